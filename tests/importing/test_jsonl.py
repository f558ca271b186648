"""A ledger as lines of JSON and back: the same entries, the same chain, and nothing else is taken."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import Book
from store.audit import verify
from store.commands import CloseThesis, OpenThesis, Remember
from store.entry import COLUMNS
from store.errors import Conflict, ForeignFile, NotFound, SchemaTooNew, StoreDamaged, StoreError
from store.importers.jsonl import import_jsonl
from store.jsonl import header_of, line_of, read_jsonl, write_jsonl


def _export(book: Book, entries: list[Any]) -> bytes:
    out = io.BytesIO()
    assert write_jsonl(entries, header_of(book.genesis, book.head()), out, None) == len(entries)
    return out.getvalue()


@pytest.fixture
def filled(open_seat: Callable[..., Any], tmp_path: Path) -> Any:
    """A ledger with a thesis, notes in other scripts and a search."""
    seat = open_seat("desk", root=tmp_path / "first")
    thesis = seat.do(
        OpenThesis(text="AAPL breaks out\u2028of its base.", symbol="aapl", tags=("Swing",)), key="k"
    )
    seat.find("base")
    seat.do(Remember(text="Nestlé 目标价 95 🚀"))
    seat.do(CloseThesis(thesis_id=thesis.id, result="won", pnl="1.50"))
    return seat


@pytest.fixture
def lines(filled: Any) -> list[bytes]:
    return _export(filled.book, filled.entries()).splitlines(keepends=True)


@pytest.fixture
def restore(tmp_path: Path) -> Callable[..., Any]:
    """Import lines below a root of its own."""

    def run(lines: list[bytes], **options: Any) -> Any:
        place = tmp_path / "export.jsonl"
        place.write_bytes(b"".join(lines))
        return import_jsonl(place, tmp_path / "second", **options)

    return run


def test_an_export_comes_back_the_same_in_every_column(
    filled: Any,
    lines: list[bytes],
    restore: Callable[..., Any],
    tmp_path: Path,
    open_seat: Callable[..., Any],
) -> None:
    made = restore(lines)
    assert made.entries == made.added == len(filled.entries())
    assert verify(Path(made.path), "desk", None).sound
    again = open_seat("desk", root=tmp_path / "second", create=False)
    assert again.entries() == filled.entries()
    assert _export(again.book, again.entries()) == b"".join(lines)
    assert again.ids("目标价") == filled.ids("目标价")


def test_a_line_is_canonical_and_holds_every_column(lines: list[bytes], filled: Any) -> None:
    header, *rest = [json.loads(line) for line in lines]
    assert header == {
        "format": "deskbook-jsonl", "version": 1, "store_id": filled.book.genesis.store_id, "strategy": "desk",
        "run": None, "head": {"sequence": len(rest), "chain_sha256": rest[-1]["chain_sha256"]},
    }  # fmt: skip
    for line, entry in zip(lines[1:], rest, strict=True):
        assert set(entry) == set(COLUMNS)
        assert (
            json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\n"
            == line.decode()
        )


def test_once_more_adds_nothing_and_a_longer_export_adds_the_rest(
    filled: Any,
    lines: list[bytes],
    restore: Callable[..., Any],
    tmp_path: Path,
    open_seat: Callable[..., Any],
) -> None:
    restore(lines)
    assert restore(lines).added == 0
    filled.do(Remember(text="Later."))
    longer = _export(filled.book, filled.entries()).splitlines(keepends=True)
    assert restore(longer, dry_run=True).added == 1
    assert restore(longer).added == 1
    assert open_seat("desk", root=tmp_path / "second", create=False).entries() == filled.entries()
    with pytest.raises(Conflict):
        restore(lines)


def test_another_ledger_in_its_place_is_left_alone(
    lines: list[bytes], restore: Callable[..., Any], tmp_path: Path, open_seat: Callable[..., Any]
) -> None:
    other = open_seat("desk", root=tmp_path / "second")
    other.do(Remember(text="Mine."))
    before = other.entries()
    with pytest.raises(Conflict, match="differs from the export at sequence 1"):
        restore(lines)
    assert other.entries() == before


def test_a_run_comes_back_as_that_run(
    open_seat: Callable[..., Any], restore: Callable[..., Any], tmp_path: Path
) -> None:
    seat = open_seat("desk", "r1", root=tmp_path / "first")
    seat.do(Remember(text="In a run."), now=1_772_461_900_000_000)
    made = restore(_export(seat.book, seat.entries()).splitlines(keepends=True))
    assert (made.strategy, made.run) == ("desk", "r1")
    assert open_seat("desk", "r1", root=tmp_path / "second", create=False).entries() == seat.entries()


def test_the_strategy_is_the_one_the_chain_binds(lines: list[bytes], restore: Callable[..., Any]) -> None:
    assert restore(lines, strategy="desk", dry_run=True).added == len(lines) - 1
    with pytest.raises(Conflict):
        restore(lines, strategy="other")


Change = Callable[[list[bytes]], list[bytes]]


def _edited(line: int, **columns: Any) -> Change:
    def change(lines: list[bytes]) -> list[bytes]:
        entry = json.loads(lines[line]) | columns
        text = json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        return [*lines[:line], text + b"\n", *lines[line + 1 :]]

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_edited(3, agent="eve"), "Line 4: .*leaf_sha256"),
        (_edited(3, content='{"text":"other"}'), "Line 4: .*content_sha256"),
        (_edited(3, sequence="3"), "Line 4: .*a value that its column cannot"),
        (_edited(3, content_salt="zz"), "Line 4: .*a value that its column cannot"),
        (_edited(3, agent=None), "Line 4: .*a value that its column cannot"),
        (_edited(3, more=1), "Line 4: .*exactly the columns"),
        (_edited(3, chain_sha256="00" * 32), "Line 4: .*chain_sha256 does not follow"),
        (lambda lines: [*lines[:4], lines[3], *lines[4:]], "Line 5: .*follows entry 3"),
        (lambda lines: [*lines[:3], *lines[4:]], "Line 4: .*follows entry 2"),
        (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], "Line 4: .*follows entry 2"),
        (lambda lines: lines[:-1], "Line .*its header says it holds"),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], "was cut off"),
        (lambda lines: [*lines[:-1], lines[-1][:40]], "was cut off"),
        (lambda lines: [*lines[:3], b" " + lines[3], *lines[4:]], "Line 4: .*not spelt"),
        (lambda lines: [*lines[:3], b"\n", *lines[3:]], "Line 4: "),
        (lambda lines: [*lines[:3], b"\xff\xfe{}\n", *lines[4:]], "Line 4: "),
        (lambda lines: lines[:1], "header says"),
    ],
)
def test_a_file_that_was_changed_is_refused_with_its_line(
    change: Change, told: str, lines: list[bytes], restore: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(StoreDamaged, match=told):
        restore(change(lines))
    assert not (tmp_path / "second").exists()


def test_any_changed_byte_is_refused(lines: list[bytes], restore: Callable[..., Any], tmp_path: Path) -> None:
    whole = b"".join(lines)
    for at in range(0, len(whole), 37):
        changed = bytearray(whole)
        changed[at] ^= 1
        with pytest.raises(StoreError):
            restore([bytes(changed)])
    assert not (tmp_path / "second").exists()


def test_what_is_no_export_is_refused(
    restore: Callable[..., Any], lines: list[bytes], tmp_path: Path
) -> None:
    for text in (
        b"",
        b"hello\n",
        b"[]\n",
        b'{"format":"other"}\n',
        lines[1],
        b'{"format":"deskbook-jsonl","version":1}\n',
    ):
        with pytest.raises(ForeignFile):
            restore([text])
    with pytest.raises(SchemaTooNew):
        restore([b'{"format":"deskbook-jsonl","version":2}\n'])
    with pytest.raises(NotFound):
        import_jsonl(tmp_path / "nothing", tmp_path / "second")


def test_a_header_that_names_another_ledger_is_refused(
    lines: list[bytes], restore: Callable[..., Any]
) -> None:
    for name, value in (("strategy", "other"), ("run", "r9"), ("store_id", "store_x")):
        with pytest.raises(StoreDamaged, match="Line 2"):
            restore(_edited(0, **{name: value})(lines))


def test_an_event_type_that_is_not_known_here_is_refused_whole(
    filled: Any, lines: list[bytes], restore: Callable[..., Any]
) -> None:
    from dataclasses import replace

    from store.canonical import chain_hash
    from store.entry import leaf_of

    *before, last = filled.entries()
    changed = replace(last, event_type="from.the.future")
    leaf = leaf_of(changed)
    changed = replace(changed, leaf_sha256=leaf, chain_sha256=chain_hash(before[-1].chain_sha256, leaf))
    header = json.loads(lines[0])
    header["head"]["chain_sha256"] = changed.chain_sha256.hex()
    with pytest.raises(StoreDamaged, match="content is not that of its type"):
        restore([json.dumps(header).encode() + b"\n", *lines[1:-1], line_of(changed)])


def test_reading_holds_one_entry_at_a_time(lines: list[bytes]) -> None:
    source = io.BytesIO(b"".join(lines))
    _, entries = read_jsonl(source)
    next(entries)
    assert source.tell() == len(lines[0]) + len(lines[1])
