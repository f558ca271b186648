"""Deskbook's store: an append-only, hash-chained ledger of trading memory and everything read from it.

Synchronous, without any knowledge of the protocol that serves it. `Book` is the way in.
"""

from .book import Book
from .caller import Caller, Client
from .replies import Reply, SearchRequest, Written
from .rows import Filter

__all__ = ["Book", "Caller", "Client", "Filter", "Reply", "SearchRequest", "Written"]
