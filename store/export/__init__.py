"""Copies of a ledger in other forms: Parquet kept beside it, and whole exports made by hand.

Importing this package loads no pyarrow; `arrow`, `segments`, `exporter`, `handmade` and `checking` do.
"""
