"""What waits for a person and what people decide: the queue, decisions, and flags with their answers."""
