"""What one memory may hold; every limit is said in the error that enforces it."""

from __future__ import annotations

TEXT_CHARS = 100_000
TAGS = 50
TAG_CHARS = 64
IDENTIFIER_CHARS = 128
SHORT_TEXT_CHARS = 500
NOTE_CHARS = 2_000
JSON_TEXT_CHARS = 64_000
QUERY_CHARS = 10_000
SEARCH_LIMIT = 50
CANDIDATES_KEPT = 50
