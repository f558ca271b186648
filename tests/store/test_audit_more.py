"""verify: the full-text index term by term, and going on where it was broken off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from store import Book, Caller, audit
from store.audit import verify
from store.audit_mark import Mark
from store.commands import Remember
from store.paths import ledger_path

CALLER = Caller("trader", "trader", "ses_1", "remember")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(Book.open(tmp_path, "default")) as book:
        for number in range(30):
            book.execute(
                CALLER, Remember(text=f"note {number} 目标价 on margins", symbol="AAPL", tags=("a", "b c"))
            )
    return ledger_path(tmp_path, "default", None)


def change(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


TAMPERED: dict[str, tuple[str, ...]] = {
    "a body": (
        "DELETE FROM memory_text WHERE rowid = 7",
        "INSERT INTO memory_text (rowid, body, labels, facets) VALUES (7, 'forged', '', '')",
    ),
    "an order of words": (
        "DELETE FROM memory_text WHERE rowid = 7",
        "INSERT INTO memory_text (rowid, body, labels, facets) VALUES (7, 'margins on 4 note 目 标 价', '', '')",
    ),
    "a row lost": ("DELETE FROM memory_text WHERE rowid = 9",),
    "a row more": ("INSERT INTO memory_text (rowid, body, labels, facets) VALUES (500, 'x', '', '')",),
}


@pytest.mark.parametrize("statements", TAMPERED.values(), ids=TAMPERED.keys())
def test_what_was_done_to_the_full_text_index_is_found_and_a_rebuild_mends_it(
    path: Path, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    assert verify(path, "default", None).sound
    change(path, *statements)
    (finding, *_) = verify(path, "default", None).findings
    assert "full-text" in finding.what
    assert "`deskbook rebuild` mends it" in finding.what
    with closing(Book.open(tmp_path, "default")) as book:
        book.rebuild(lambda _: None)
    assert verify(path, "default", None).sound


@pytest.fixture
def marks(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Mark]]:
    monkeypatch.setattr(audit, "MARK_EVERY", 10)

    def leave() -> list[Mark]:
        kept: list[Mark] = []
        assert verify(path, "default", None, keep=kept.append).sound
        return kept

    return leave


def read_of(path: Path, since: Mark | None) -> tuple[audit.Report, int]:
    """The report, and how many entries were read for it."""
    done: list[int] = []
    report = verify(
        path, "default", None, lambda number, total: done.append(number) if total > 31 else None, since=since
    )
    return report, len(done)


def test_a_verification_goes_on_where_it_was_broken_off(path: Path, marks: Callable[[], list[Mark]]) -> None:
    kept = marks()
    assert [mark.sequence for mark in kept] == [10, 20, 30]
    whole, everything = read_of(path, None)
    for mark in kept:
        report, read = read_of(path, mark)
        assert report == whole
        assert read == everything - mark.sequence


@pytest.mark.parametrize(
    "forge",
    [
        lambda mark: replace(mark, chain="00" * 32),
        lambda mark: replace(mark, store_id="store_other"),
        lambda mark: replace(mark, sequence=mark.sequence + 1),
        lambda mark: replace(mark, sequence=10_000),
    ],
)
def test_a_mark_that_does_not_fit_the_ledger_is_passed_over(
    path: Path, marks: Callable[[], list[Mark]], forge: Callable[[Mark], Mark]
) -> None:
    whole, everything = read_of(path, None)
    assert read_of(path, forge(marks()[1])) == (whole, everything)


def test_what_is_wrong_after_the_mark_is_found(path: Path, marks: Callable[[], list[Mark]]) -> None:
    mark = marks()[1]
    change(
        path,
        "DROP TRIGGER memory_events_no_update",
        "UPDATE memory_events SET agent = 'x' WHERE sequence = 25",
    )
    found = verify(path, "default", None, since=mark).findings
    assert 25 in {finding.sequence for finding in found}
