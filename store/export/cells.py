"""Cells of a CSV file that a spreadsheet only shows, and never runs.

RFC 4180 quoting, UTF-8, line breaks inside a cell kept. A text that a spreadsheet would read as a formula gets an
apostrophe before it (OWASP, "CSV Injection"); a number stays a number.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from typing import Any, Final, Protocol

from ..clock import format_instant
from .schemas import SCHEMAS, Type
from .tables import Values

STARTS: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
    "\u2212",
    "|",
    "%",
)
"""What begins a formula or a command, its full-width forms included."""

_UNSEEN = re.compile(r"^[\s\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def harmless(text: str) -> str:
    """The text, with an apostrophe before one that a spreadsheet would run, also after what is not seen."""
    return f"'{text}" if text.startswith(STARTS) or _UNSEEN.sub("", text).startswith(STARTS) else text


def cell(kind: Type, value: Any) -> str:
    """A value of a column as the text of its cell; empty where there is none."""
    if value is None:
        return ""
    if kind == "time":
        return format_instant(value)
    if kind == "bytes":
        return str(value.hex())
    if kind == "integer":
        return str(value)
    if kind in ("texts", "candidates", "selected"):
        return harmless(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    text = str(value)
    if kind in ("number", "digits") and _NUMBER.fullmatch(text):
        return text
    return harmless(text)


class TextOut(Protocol):
    """What takes text as it is, its line ends included."""

    def write(self, text: str, /) -> int:
        """Take some text."""


def write_cells(file: TextOut, table: str, rows: Iterable[Values]) -> int:
    """Write a table with its head line; gives the number of rows."""
    schema, count = SCHEMAS[table], 0
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([column.name for column in schema])
    for row in rows:
        writer.writerow([cell(column.type, value) for column, value in zip(schema, row, strict=True)])
        count += 1
    return count
