"""What an export says was taken away, read ahead of the entries that it stands behind.

Nothing here is proven yet: the lines are, once they are read in their order, and with them what they say.
"""

from __future__ import annotations

import json
from typing import BinaryIO, Final

from ..canonical import canonical
from ..jsonl import LINE_BYTES
from ..rows import Redaction

_MARK: Final = b'"event_type":"memory.redacted"'


def redactions_in(source: BinaryIO) -> dict[int, Redaction]:
    """What stays of every entry that a later one in the file redacts, by sequence; the first to say so counts."""
    found: dict[int, Redaction] = {}
    hashes: dict[int, tuple[str, str]] = {}
    blank: dict[int, tuple[str, str]] = {}
    while raw := source.readline(LINE_BYTES + 1):
        try:
            if b'"content":"",' in raw:
                line = json.loads(raw)
                blank[line["sequence"]] = line["event_type"], line["content_sha256"]
            if _MARK in raw:
                line = json.loads(raw)
                if line["event_type"] != "memory.redacted":
                    continue
                for each in json.loads(line["content"])["covered"]:
                    if each["sequence"] < line["sequence"] and each["sequence"] not in found:
                        kept = canonical(each["kept"]).decode()
                        found[each["sequence"]] = Redaction(each["sequence"], line["sequence"], kept)
                        hashes[each["sequence"]] = each["event_type"], each["content_sha256"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # a line that is none: whoever proves the file says so, and names it
    return {at: kept for at, kept in found.items() if blank.get(at, hashes[at]) == hashes[at]}
