"""Whatever was written, its export in lines comes back as the same ledger with the same projections."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from store.audit import verify
from store.importers.jsonl import import_jsonl
from store.jsonl import header_of, write_jsonl
from store.rows import EntryFilter

KINDS = "note replace propose risk decide lesson open open update update close resolve flag search state get".split()
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.text(min_size=1, max_size=30),
        st.sampled_from([None, "AAPL", "brk.b", "BTC/USD", "目标"]),
        st.lists(st.sampled_from(["swing", "Value", "目标"]), max_size=3).map(tuple),
        st.integers(0, 30),
        st.none()
        | st.dictionaries(st.text(max_size=5), st.floats(-1e18, 1e18) | st.text(max_size=5), max_size=2),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from([0, 1, 60_000_000]),
    ),
    min_size=1,
    max_size=20,
)
RUNS = st.sampled_from([None, "r1"])


def _projections(path: Path) -> dict[str, list[Any]]:
    """Every row of every table but the ledger, the full-text index included."""
    connection = apsw.Connection(str(path))
    tables = [
        str(name)
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'memory%'"
            " AND name NOT LIKE 'memory_text%' AND name <> 'memory_events'"
        )
    ]
    connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, memory_text, instance)")
    found = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}
    found["words"] = sorted(connection.execute("SELECT term, doc, col, offset FROM temp.words"))
    connection.close()
    return found


@settings(max_examples=40)
@given(STEPS, RUNS)
def test_an_export_in_lines_comes_back_as_the_same_ledger(
    new_history: Any, steps: list[Any], run: str | None
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        with new_history(run) as history:
            for step in steps:
                history.step(step)
            entries = history.book.log(EntryFilter(limit=1_000_000))
            out = io.BytesIO()
            write_jsonl(entries, header_of(history.book.genesis, history.book.head()), out)
            (folder / "e.jsonl").write_bytes(out.getvalue())
            made = import_jsonl(folder / "e.jsonl", folder / "root", durability="normal")
            assert made.added == len(entries)
            assert verify(Path(made.path), "s", run).findings == ()
            assert _projections(Path(made.path)) == _projections(history.path)
            assert _lines(Path(made.path)) == _lines(history.path)
    finally:
        shutil.rmtree(folder)


def _lines(path: Path) -> str:
    connection = apsw.Connection(str(path))
    rows = list(connection.execute("SELECT * FROM memory_events ORDER BY sequence"))
    connection.close()
    return json.dumps(rows, default=bytes.hex)
