"""Backup and restore: a ledger copied whole while it is served, and put back only when it is the same."""
