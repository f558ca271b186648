"""docs/exports.md says what the exports are: tables, columns, types, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest

from server.exporting import FIRST_SECONDS, LONGEST_WAIT_SECONDS, SHARE
from store.export.arrow import ARROW
from store.export.exporter import GROWS_TO
from store.export.manifest import FAILURE, FOLDER, MANIFEST, SEGMENTS
from store.export.schemas import SCHEMAS, Type
from store.export.tables import LARGEST_APPENDED, LARGEST_CHANGING

Codes = Callable[[str], list[str]]
WORDS = {2: "two", 20: "twenty"}


@pytest.fixture
def page(documents: dict[str, Any]) -> Any:
    return documents["docs/exports.md"]


def test_every_table_is_named_with_all_its_columns_and_their_types(page: Any, codes: Codes) -> None:
    assert [codes(row["table"]) for row in page.table("## Tables")] == [[table] for table in SCHEMAS]
    _, _, section = page.text.partition("## Columns")
    told = {
        line.split("|")[1].strip().strip("`"): line.split("|")[2].strip()
        for line in section.splitlines()
        if line.startswith(("| `memory", "| `positions", "| `orders"))
    }
    assert told == {
        table: ", ".join(f"`{column.name}` ({column.written})" for column in columns)
        for table, columns in SCHEMAS.items()
    }


def test_every_type_is_explained_with_what_it_is_in_parquet(page: Any) -> None:
    _, _, section = page.text.partition("| type | in Parquet | in DuckDB | what it holds |")
    lines = [line for line in section.split("\n\n")[0].splitlines() if line.startswith("| ")]
    told = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines}
    assert list(told) == [*get_args(Type)[:8], "texts", "selected", "candidates"]
    for kind, arrow in ARROW.items():
        name = str(arrow)
        if name.startswith("list"):
            assert told[kind] == ("list of struct" if "struct" in name else "list of string")
        elif name.startswith("dictionary"):
            assert told[kind] == "dictionary of string"
        else:
            assert told[kind] == name.replace("tz=", "")


def test_the_numbers_are_those_of_the_code(page: Any) -> None:
    text = " ".join(page.text.split())
    for words in (
        f"A pass follows {WORDS[int(FIRST_SECONDS)]} seconds after",
        f"at least {WORDS[SHARE]} times its own length",
        f"{LONGEST_WAIT_SECONDS / 60:g} minutes at most",
        f"until it has {GROWS_TO:,} rows",
        f"files of up to {LARGEST_APPENDED:,} rows",
        f"the files of up to {LARGEST_CHANGING:,} rows",
        f"{FOLDER}/{MANIFEST}",
        f"{FOLDER}/{FAILURE}",
        f"{FOLDER}/{SEGMENTS}/TABLE/FIRST-HASH.parquet",
    ):
        assert words in text, words
