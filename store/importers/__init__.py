"""What other systems and other copies kept, brought into a ledger."""
