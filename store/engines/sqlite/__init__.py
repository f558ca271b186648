"""The SQLite engine: one file, opened by many processes, written by one at a time."""

from .engine import SqliteEngine

__all__ = ["SqliteEngine"]
