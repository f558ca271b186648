"""verify: how much it does for each entry, what it does beside, and contents that only a rewritten chain can hold."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller, SearchRequest, audit_pages
from store.audit import verify
from store.commands import Decide, FlagMemory, NoteRisk, Remember
from store.entry import COLUMNS
from store.paths import ledger_path
from store.rows import EntryFilter

CALLER = Caller("trader", "trader", "ses_1", "remember")
INSERT = "INSERT INTO temp.expected_text (rowid"


def filled(root: Path, size: int, *, searching: bool = False, text: str = "note {} on margins") -> Path:
    with closing(Book.open(root, "default", durability="normal")) as book:
        for number in range(size):
            told = text.format(number)
            if number % 3:
                book.execute(CALLER, Remember(text=told, symbol="AAPL", tags=("a", f"t{number % 5}")))
            else:
                evidence = {"close": "101.25", "n": [number]}
                book.execute(CALLER, Decide(text=told, action="buy", symbol="AAPL", evidence=evidence))
            if searching:
                book.search(CALLER, SearchRequest(query="margins"))
    return ledger_path(root, "default", None)


@contextmanager
def statements() -> Iterator[Counter[str]]:
    """How often each statement is run, on any connection that is made meanwhile."""
    counts: Counter[str] = Counter()

    def watch(connection: apsw.Connection) -> None:
        def told(_: apsw.Cursor, sql: str, __: Any) -> bool:
            counts[sql] += 1
            return True

        connection.exec_trace = told

    apsw.connection_hooks.append(watch)
    try:
        yield counts
    finally:
        apsw.connection_hooks.remove(watch)


def run_for(path: Path) -> tuple[int, Counter[str]]:
    with statements() as counts:
        report = verify(path, "default", None)
    assert report.findings == ()
    return report.entries, counts


def test_an_entry_of_a_memory_costs_no_statement_but_that_of_its_terms(tmp_path: Path) -> None:
    work = []
    for size in (60, 180):
        path = filled(tmp_path / str(size), size)
        entries, counts = run_for(path)
        terms = sum(count for sql, count in counts.items() if sql.startswith(INSERT))
        assert entries - 2 == size
        assert terms == size + 1  # and the row by which an index has more than one segment
        work.append(sum(counts.values()) - terms)
    assert work[0] == work[1] < 120


def test_a_search_costs_at_most_one_statement(tmp_path: Path) -> None:
    work = []
    for size in (20, 60):
        entries, counts = run_for(filled(tmp_path / str(size), size, searching=True))
        work.append((entries, sum(counts.values())))
    (few, least), (many, most) = work
    assert most - least <= many - few


LEDGERS: dict[str, Callable[[Path], Path]] = {
    "of nothing": lambda root: filled(root, 0),
    "of one": lambda root: filled(root, 1),
    "of many": lambda root: filled(root, 300),
    "in Han": lambda root: filled(root, 20, text="Nestlé {} 目标价 95"),
    "of many words": lambda root: filled(root, 30, text=" ".join(f"w{{0}}x{each}" for each in range(300))),
}


def rebuilt(root: Path) -> None:
    with closing(Book.open(root, "default")) as book:
        book.rebuild(lambda _: None)


@pytest.mark.parametrize("anew", [False, True], ids=["as written", "made anew"])
@pytest.mark.parametrize("make", LEDGERS.values(), ids=LEDGERS.keys())
def test_a_sound_full_text_index_is_known_by_its_pages_and_never_read_term_by_term(
    tmp_path: Path, make: Callable[[Path], Path], anew: bool
) -> None:
    path = make(tmp_path)
    if anew:
        rebuilt(tmp_path)
    _, counts = run_for(path)
    assert not [sql for sql in counts if "fts5vocab" in sql]


def test_an_index_whose_pages_are_cut_otherwise_is_read_term_by_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_pages, "_begin", lambda *_: False)
    path = filled(tmp_path, 20)
    _, counts = run_for(path)
    assert [sql for sql in counts if "fts5vocab" in sql]


STRUCTURES = {
    "of nothing": "UPDATE memory_text_data SET block = x'00000000ff000001000000' WHERE id = 10",
    "of no sense": "UPDATE memory_text_data SET block = x'00000000ff00000101' WHERE id = 10",
    "that is gone": "DELETE FROM memory_text_data WHERE id = 10",
}


@pytest.mark.parametrize("made", [False, True], ids=["as written", "in one segment"])
@pytest.mark.parametrize("statement", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_an_index_that_hides_its_pages_is_not_sound_though_they_are_all_there(
    tmp_path: Path, statement: str, made: bool
) -> None:
    path = filled(tmp_path, 20)
    with closing(apsw.Connection(str(path))) as connection:
        if made:
            connection.execute("INSERT INTO memory_text (memory_text) VALUES ('optimize')")
    assert verify(path, "default", None).sound
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement)
    assert not verify(path, "default", None).sound


def test_verify_of_a_ledger_that_is_written_meanwhile_is_sound_and_leaves_no_thread(tmp_path: Path) -> None:
    path = filled(tmp_path, 20)
    before = threading.active_count()
    with closing(Book.open(tmp_path, "default", durability="normal")) as book:
        own = threading.active_count()
        report = verify(
            path, "default", None, lambda *_: book.execute(CALLER, NoteRisk(text="meanwhile")) and None
        )
        assert threading.active_count() <= own + 1  # the writer's, which begins with the first change
    assert report.findings == ()
    assert report.entries == 22
    assert threading.active_count() == before
    assert verify(path, "default", None).entries == 44


def test_what_is_asked_beside_is_broken_off_with_the_rest(tmp_path: Path) -> None:
    path = filled(tmp_path, 30)
    before = threading.active_count()

    def stop(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(path, "default", None, stop)
    assert threading.active_count() == before


def test_a_moment_that_two_connections_cannot_share_is_tried_again(tmp_path: Path) -> None:
    path = filled(tmp_path, 3)
    one, other = (apsw.Connection(str(path)) for _ in range(2))
    writes = iter(range(2))

    class Late:
        """A connection before whose first transactions somebody writes."""

        def execute(self, sql: str) -> Any:
            if sql == "BEGIN" and next(writes, None) is not None:
                with closing(Book.open(tmp_path, "default", durability="normal")) as book:
                    book.execute(CALLER, NoteRisk(text="between"))
            return other.execute(sql)

        def pragma(self, name: str) -> Any:
            return other.pragma(name)

    with closing(one), closing(other):
        assert audit_pages._begin(one, Late())  # type: ignore[arg-type]
        assert one.in_transaction
        assert other.in_transaction
        assert audit_pages._moment(one) == audit_pages._moment(other)


def rewritten(path: Path, **changes: Any) -> int:
    """Change the last entry and make its hashes anew, as whoever owns the disk can; and its sequence."""
    with closing(apsw.Connection(str(path))) as connection:
        guard = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'memory_events_no_update'").get
        connection.execute("DROP TRIGGER memory_events_no_update")
        row = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM memory_events ORDER BY sequence DESC LIMIT 1"
        ).fetchone()
        entry = dict(zip(COLUMNS, row, strict=True)) | changes
        chain = connection.execute(
            "SELECT chain_sha256 FROM memory_events WHERE sequence = ?", (entry["sequence"] - 1,)
        ).get or bytes(32)
        entry["content_sha256"] = hashlib.sha256(entry["content_salt"] + entry["content"].encode()).digest()
        outside = ("content", "content_salt", "leaf_sha256", "chain_sha256")
        covered = {
            name: value.hex() if isinstance(value, bytes) else value
            for name, value in entry.items()
            if name not in outside
        }
        written = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        entry["leaf_sha256"] = hashlib.sha256(b"\0" + written.encode()).digest()
        entry["chain_sha256"] = hashlib.sha256(b"\1" + chain + entry["leaf_sha256"]).digest()
        connection.execute(
            f"UPDATE memory_events SET {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE sequence = ?",
            (*(entry[name] for name in COLUMNS), entry["sequence"]),
        )
        connection.execute(guard)
    return int(entry["sequence"])


REWRITTEN: dict[str, dict[str, Any]] = {
    "a list": {"content": "[]"},
    "a text": {"content": '"x"'},
    "a number": {"content": "1"},
    "no JSON": {"content": "{"},
    "more than JSON": {"content": '{"text":"x"} {}'},
    "nested without end": {"content": '{"text":' + "[" * 100_000},
    "no kind": {"kind": None},
    "another kind": {"kind": "other"},
    "another type": {"event_type": "memory.other"},
    "another text": {"content": '{"notices":[],"review_state":"none","tags":[],"text":"other"}'},
    "a text twice": {"content": '{"notices":[],"review_state":"none","tags":[],"text":"x","text":"other"}'},
    "a key too many": {
        "content": '{"more":1,"notices":[],"review_state":"none","tags":["a","t4"],"text":"note 29 on margins"}'
    },
}


@pytest.mark.parametrize("changes", REWRITTEN.values(), ids=REWRITTEN.keys())
def test_a_content_that_is_none_is_a_finding_though_its_hashes_were_made_anew(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    path = filled(tmp_path, 30)
    sequence = rewritten(path, **changes)
    (finding, *_) = verify(path, "default", None).findings
    assert finding.sequence == sequence, finding


def test_a_flag_with_half_a_character_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    path = filled(tmp_path, 30)
    with closing(Book.open(tmp_path, "default")) as book:
        told = book.execute(CALLER, Remember(text="a note"))
        book.execute(CALLER, FlagMemory(memory_id=told.id, reason="stale", note="NOTE"))
        content = book.log(EntryFilter(limit=1, newest_first=True))[0].content
    sequence = rewritten(path, content=content.replace('"NOTE"', r'"\ud800"'))
    (finding, *_) = verify(path, "default", None).findings
    assert finding.sequence == sequence, finding


def test_what_was_rewritten_as_it_was_is_sound(tmp_path: Path) -> None:
    path = filled(tmp_path, 30)
    rewritten(path)
    assert verify(path, "default", None).findings == ()


@pytest.mark.parametrize(
    "content", ["[]", "{", "{}", "[" * 100_000], ids=["list", "no JSON", "empty", "nested"]
)
def test_a_genesis_that_binds_nothing_is_a_finding_though_its_hashes_were_made_anew(
    tmp_path: Path, content: str
) -> None:
    path = filled(tmp_path, 0)
    assert rewritten(path, content=content) == 1
    (finding, *_) = verify(path, "default", None).findings
    assert (finding.sequence, "binds no strategy" in finding.what) == (1, True)
