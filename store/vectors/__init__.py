"""Vectors of memories' texts beside each ledger: a cache in a file of its own, searched by similarity."""
