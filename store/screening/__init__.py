"""What a write is screened for: secrets, instructions, repeats, contradictions. Pure; no ledger."""
