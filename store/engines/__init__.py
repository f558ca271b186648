"""Databases a ledger can live in: the protocol in `base`, SQLite in `sqlite`."""
