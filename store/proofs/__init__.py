"""Signed checkpoints of a ledger and proofs that one entry stands in it, for somebody who has no Deskbook.

A checkpoint is the root of the RFC 6962 Merkle tree over the leaves of the first `size` entries, signed as a
C2SP note. `store.audit` shares no code with this package: what is proven here is checked there.
"""
