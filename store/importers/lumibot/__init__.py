"""Brings Lumibot's `memory.sqlite` (4.6, its schema 1) into a ledger."""

from .importing import import_lumibot

__all__ = ["import_lumibot"]
