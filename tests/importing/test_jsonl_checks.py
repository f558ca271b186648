"""Exports whose hashes are right and whose content no ledger can hold, and what a failed import leaves behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.canonical import ZERO_CHAIN, canonical, chain_hash, content_hash
from store.commands import OpenThesis, Remember
from store.entry import Entry, leaf_of
from store.errors import DeskbookError, ForeignFile, StoreDamaged, StoreFull
from store.events import Genesis
from store.importers import jsonl
from store.importers.jsonl import import_jsonl
from store.jsonl import header_of, write_jsonl
from store.ledger import Ledger, event_of
from store.rows import Head

NOTES = 12
AT = 9
"""The entry that is changed: one of the notes."""


@pytest.fixture
def entries(open_seat: Callable[..., Any], tmp_path: Path) -> list[Entry]:
    """A thesis and notes, the first with a key."""
    seat = open_seat("desk", root=tmp_path / "first")
    seat.do(OpenThesis(text="AAPL breaks out.", symbol="aapl"), key="k")
    for number in range(NOTES):
        seat.do(Remember(text=f"Note {number}."), key=f"k{number}")
    found: list[Entry] = seat.entries()
    return found


@pytest.fixture
def forge(entries: list[Entry], tmp_path: Path) -> Callable[..., Path]:
    """Write an export with an entry changed and every hash right; `everywhere` changes each entry."""

    def run(at: int = AT, everywhere: dict[str, Any] | None = None, **columns: Any) -> Path:
        chain, made = ZERO_CHAIN, []
        for entry in entries:
            changed = replace(entry, **(everywhere or {}), **(columns if entry.sequence == at else {}))
            if entry.sequence == 1:
                bound = {"strategy": changed.strategy}
                bound |= {"run": changed.run_id} if changed.run_id is not None else {}
                changed = replace(changed, content=canonical(json.loads(entry.content) | bound).decode())
            salted = content_hash(changed.content_salt, changed.content.encode())
            changed = replace(changed, content_sha256=salted)
            leaf = leaf_of(changed)
            chain = chain_hash(chain, leaf)
            made.append(replace(changed, leaf_sha256=leaf, chain_sha256=chain))
        genesis = event_of(made[0])
        assert isinstance(genesis, Genesis)
        header = header_of(genesis, Head(len(made), chain, 0, 0))
        place = tmp_path / "export.jsonl"
        with place.open("wb") as out:
            write_jsonl(made, header, out)
        return place

    return run


def test_a_forgery_that_changes_nothing_is_taken(forge: Callable[..., Path], tmp_path: Path) -> None:
    assert import_jsonl(forge(), tmp_path / "second").added > NOTES


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"event_type": "bogus"}, "its content is not that of its type"),
        ({"content": "[]"}, "its content is not that of its type"),
        ({"content": "{"}, "its content is not that of its type"),
        ({"content": '{"text":"\\ud800"}'}, "its content is not that of its type"),
        ({"content": '{"text":"x","zzz":1}'}, "its content is not that of its type"),
        ({"content": '{"review_by":1180591620717411303424,"text":"x"}'}, "a number that is too large"),
        ({"effective_at": 2**70}, "effective_at lies outside"),
        ({"effective_at": 2**62}, "effective_at lies outside"),
        ({"recorded_at": -(2**62)}, "recorded_at lies outside"),
        ({"subject_type": "zzz"}, "subject_type is not known"),
        ({"kind": "zzz"}, "kind is not known"),
        ({"kind": None}, "kind is missing"),
        ({"event_id": ""}, "event_id is empty"),
        ({"agent": "a\x00b\x1b[31m"}, "agent holds a control"),
        ({"content_salt": b""}, "content_salt has fewer"),
        ({"arguments_sha256": b""}, "arguments_sha256 has not"),
        ({"schema_version": 99}, "schema_version is not 1"),
        (
            {"event_type": "thesis.updated", "subject_id": "nope", "content": '{"text":"x"}'},
            "no entry before it recorded",
        ),
    ],
)
def test_an_entry_that_no_ledger_can_hold_is_refused_with_its_line(
    columns: dict[str, Any], told: str, forge: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(StoreDamaged, match=f"Line {AT + 1}: .*{told}") as fault:
        import_jsonl(forge(**columns), tmp_path / "second")
    assert fault.value.hint
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("column", ["event_id", "idempotency_key", "subject_id"])
def test_what_must_be_unique_comes_once(
    column: str, forge: Callable[..., Path], entries: list[Entry], tmp_path: Path
) -> None:
    with pytest.raises(StoreDamaged, match=f"Line {AT + 1}: .*stands in an entry before it too"):
        import_jsonl(forge(**{column: getattr(entries[AT - 2], column)}), tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "x" * 129])
def test_a_name_that_no_config_may_give_is_refused(
    name: str, forge: Callable[..., Path], tmp_path: Path
) -> None:
    for column in ("strategy", "run_id"):
        with pytest.raises(StoreDamaged, match=rf"Line 2: .*{column} (is empty|has \d+|holds a control)"):
            import_jsonl(forge(everywhere={column: name}), tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("fault", [KeyError("x"), StoreFull("The disk is full.")])
def test_an_import_that_fails_half_way_leaves_no_ledger_that_it_began(
    fault: Exception, forge: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore = Ledger.restore

    def failing(self: Ledger, transaction: Any, entry: Entry) -> None:
        if entry.sequence == AT:
            raise fault
        restore(self, transaction, entry)

    source = forge()
    monkeypatch.setattr(jsonl, "BATCH", 4)
    monkeypatch.setattr(Ledger, "restore", failing)
    with pytest.raises(DeskbookError):
        import_jsonl(source, tmp_path / "second")
    assert not list((tmp_path / "second").rglob("memory.sqlite"))
    monkeypatch.undo()
    assert import_jsonl(source, tmp_path / "second").added > NOTES


def test_a_ledger_that_somebody_wrote_to_meanwhile_is_kept(
    forge: Callable[..., Path],
    entries: list[Entry],
    open_seat: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(done: int, _total: int) -> None:
        if done == len(entries) + 4:
            open_seat("desk", root=tmp_path / "second", create=False).do(Remember(text="Mine."))

    monkeypatch.setattr(jsonl, "BATCH", 4)
    with pytest.raises(StoreDamaged):
        import_jsonl(forge(), tmp_path / "second", progress=write)
    assert open_seat("desk", root=tmp_path / "second", create=False).ids("Mine")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ForeignFile, match="not a plain file"):
        import_jsonl(tmp_path / "pipe", tmp_path / "second")
