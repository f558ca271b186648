"""A run is a ledger of its own: it changes nothing of live, reads no other run, and waits for nobody."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from store import Book, SearchRequest
from store.commands import CloseThesis, Decide, FlagMemory, OpenThesis, Remember, ResolveMemory
from store.engines.sqlite import SqliteEngine
from store.errors import ClockError, ConfigError, ForeignFile, Inherited, NotFound, StoreError
from store.leaks import find_leaks
from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import Hands, Seat

HOUR = 3_600_000_000
START = 1_772_461_800_000_000
LATER = START + 100 * HOUR
OpenSeat = Callable[..., "Seat"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where `open_seat` opens its ledgers."""
    return tmp_path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def texts(seat: Seat, now: int | None = None, query: str = "", **wanted: Any) -> list[str]:
    return [hit["text"] for hit in seat.find(query, who=seat.caller(now=now), **wanted)["hits"]]


def test_live_never_reads_a_run_and_runs_never_read_each_other(open_seat: OpenSeat) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn live"))
    one = open_seat(run="one", inherit="live")
    two = open_seat(run="two")
    mine = one.do(Remember(text="unicorn one"), now=LATER)
    two.do(Remember(text="unicorn two"), now=LATER)
    assert texts(live, query="unicorn") == texts(live) == ["unicorn live"]
    assert sorted(texts(one, LATER, "unicorn")) == ["unicorn live", "unicorn one"]
    assert texts(two, LATER, "unicorn") == texts(two, LATER) == ["unicorn two"]
    assert live.state()["counts"]["memories"] == 1
    for other, now in ((live, None), (two, LATER)):
        with pytest.raises(NotFound):
            other.get(mine.id, other.caller(now=now))
        with pytest.raises(NotFound):
            other.book.show(mine.id)
        with pytest.raises(NotFound):
            other.do(Remember(text="x", supersedes=mine.id), now=now)


def test_what_a_run_does_leaves_the_live_ledger_byte_for_byte_as_it_was(open_seat: OpenSeat) -> None:
    live = open_seat()
    note = live.do(Remember(text="unicorn", symbol="AAPL"))
    thesis = live.do(OpenThesis(text="unicorn thesis", symbol="AAPL"))
    live.book.close()
    before = digest(live.path)
    run = open_seat(run="r", inherit="live")
    own = run.do(Decide(text="bought", action="buy", thesis_id=thesis.id), now=LATER)
    assert own.status == "recorded"
    run.find("unicorn", who=run.caller(now=LATER))
    run.get(note.id, run.caller(now=LATER))
    run.state(run.caller(now=LATER))
    changes = (
        Remember(text="x", supersedes=note.id),
        ResolveMemory(memory_id=note.id, status="retired"),
        FlagMemory(memory_id=note.id, reason="wrong"),
        CloseThesis(thesis_id=thesis.id, result="win"),
    )
    for change in changes:
        with pytest.raises(Inherited, match="live ledger"):
            run.do(change, now=LATER)
    run.book.rebuild(lambda _sequence: None)
    run.book.close()
    find_leaks(live.path.parents[1], "default", "r")
    assert digest(live.path) == before
    log = live.path.with_name("memory.sqlite-wal")  # a last reader leaves it behind, empty
    assert not log.exists() or log.stat().st_size == 0


def test_a_runs_work_leaves_an_open_live_ledgers_head_and_files_alone(open_seat: OpenSeat) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn"))
    files = [path for path in live.path.parent.iterdir() if path.name.startswith("memory.sqlite")]
    before, head = {path: digest(path) for path in files if not path.name.endswith("-shm")}, live.book.head()
    run = open_seat(run="r", inherit="live")
    for number in range(20):
        run.do(Remember(text=f"unicorn {number}"), now=LATER)
        run.find("unicorn", who=run.caller(now=LATER))
    assert live.book.head() == head
    assert {path: digest(path) for path in before} == before


def test_a_held_run_makes_neither_another_run_nor_live_wait(open_seat: OpenSeat, hands: Hands) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn"))
    one, two = open_seat(run="one", inherit="live"), open_seat(run="two", inherit="live")
    with hands.hold("one"):
        two.do(Remember(text="two goes on"), now=LATER)
        assert len(texts(two, LATER)) == 2
        live.do(Remember(text="live goes on"))
        assert len(texts(live)) == 2
        three = open_seat(run="three", inherit="live")
        three.do(Remember(text="three begins"), now=LATER)
        assert one.state(one.caller(now=LATER))["recorded"] is False  # its readers are served as well
    one.do(Remember(text="one goes on"), now=LATER)
    assert len(texts(one, LATER)) == 2


def test_held_live_ledger_makes_no_run_wait_to_begin_read_or_write(open_seat: OpenSeat, hands: Hands) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn"))
    with hands.hold(None):
        run = open_seat(run="r", inherit="live")
        run.do(Remember(text="mine"), now=LATER)
        assert sorted(texts(run, LATER)) == ["mine", "unicorn"]


def test_what_live_learns_after_the_run_began_is_never_seen(open_seat: OpenSeat) -> None:
    live = open_seat()
    old = live.do(OpenThesis(text="unicorn first", symbol="AAPL"))
    run = open_seat(run="r", inherit="live")
    live.do(Remember(text="unicorn after the pin"))
    live.do(CloseThesis(thesis_id=old.id, result="loss"))
    who = run.caller(now=LATER)
    assert texts(run, LATER, "unicorn") == texts(run, LATER) == ["unicorn first"]
    state = run.state(who)
    assert {"open_theses": 1, "validated_lessons": 0, "memories": 1}.items() <= state["counts"].items()
    got = run.get(old.id, who)
    assert (got["memory"]["status"], got["memory"]["source"], got["history_total"]) == ("open", "live", 1)
    again = open_seat(run="r", inherit="live")  # opened once more, the pin is the one of its genesis
    assert texts(again, LATER, "unicorn") == ["unicorn first"]


def test_live_is_seen_as_it_stood_at_the_runs_own_time(open_seat: OpenSeat) -> None:
    live = open_seat()
    live.clock.us = START + HOUR
    live.do(Remember(text="unicorn early"))
    live.clock.us = START + 3 * HOUR
    live.do(Remember(text="unicorn late"))
    run = open_seat(run="r", inherit="live", begins=START)
    assert texts(run, START, "unicorn") == []
    assert texts(run, START + 2 * HOUR, "unicorn") == ["unicorn early"]
    assert len(texts(run, START + 4 * HOUR, "unicorn")) == 2
    assert texts(run, START + 5 * HOUR, "unicorn", as_of=START + 2 * HOUR) == ["unicorn early"]


def test_a_listing_over_both_ledgers_pages_without_repeating_or_losing_any(open_seat: OpenSeat) -> None:
    live = open_seat()
    live.clock.us = START + 5 * HOUR
    live.do(Remember(text="dated late"))
    live.clock.us = START
    for number in range(4):
        live.do(Remember(text=f"early {number}"))
    run = open_seat(run="r", inherit="live")
    run.do(Remember(text="own"), now=START + 4 * HOUR)
    pages, cursor = [], None
    while True:
        body = run.find(who=run.caller(now=LATER), limit=2, cursor=cursor)
        pages += [hit["text"] for hit in body["hits"]]
        cursor = body["cursor"]
        if cursor is None:
            break
    assert pages == texts(run, LATER, limit=50)
    assert sorted(pages) == ["dated late", "early 0", "early 1", "early 2", "early 3", "own"]


def replace_by_new(path: Path, root: Path) -> None:
    for each in path.parent.glob("memory.sqlite*"):
        each.unlink()
    Book.open(root, "default").close()


def cut_the_tail(path: Path, root: Path) -> None:
    _sql(path, "DELETE FROM memory_events WHERE sequence > 1")


def rewrite_the_pinned_entry(path: Path, root: Path) -> None:
    _sql(path, "UPDATE memory_events SET chain_sha256 = randomblob(32)")


def remove(path: Path, root: Path) -> None:
    for each in path.parent.glob("memory.sqlite*"):
        each.unlink()


def _sql(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    for (name,) in list(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("damage", [replace_by_new, cut_the_tail, rewrite_the_pinned_entry, remove])
def test_a_run_refuses_a_live_ledger_that_is_not_the_one_it_began_with(
    open_seat: OpenSeat, tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn"))
    live.book.close()
    open_seat(run="r", inherit="live").book.close()
    damage(live.path, tmp_path)
    with pytest.raises(ForeignFile, match="live ledger that this run inherits") as told:
        open_seat(run="r", inherit="live")
    assert "begin a new run" in (told.value.hint or "")
    if damage is not remove:
        open_seat(run="other", inherit="live")


def test_a_live_ledger_replaced_under_an_open_run_is_told_by_the_next_reading(
    open_seat: OpenSeat, tmp_path: Path
) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn"))
    live.book.close()
    run = open_seat(run="r", inherit="live")
    replace_by_new(live.path, tmp_path)
    with pytest.raises(StoreError, match="removed or replaced"):
        texts(run, LATER)


def test_a_run_that_began_before_any_live_ledger_inherits_nothing_for_ever(open_seat: OpenSeat) -> None:
    run = open_seat(run="r", inherit="live")
    assert (run.book.genesis.inherit, run.book.genesis.live_sequence) == ("live", 0)
    open_seat().do(Remember(text="unicorn"))
    assert texts(open_seat(run="r", inherit="live"), LATER) == texts(run, LATER) == []


@pytest.mark.parametrize(("began", "asked"), [("live", "none"), ("none", "live")])
def test_a_run_goes_on_as_it_began_to_inherit(open_seat: OpenSeat, began: str, asked: str) -> None:
    open_seat().do(Remember(text="unicorn"))
    open_seat(run="r", inherit=began).do(Remember(text="mine"), now=LATER)
    with pytest.raises(ConfigError, match=f'begun with inherit = "{began}"'):
        open_seat(run="r", inherit=asked)
    assert len(texts(open_seat(run="r"), LATER)) == (2 if began == "live" else 1)


ODD = [
    "a b",
    "a/b",
    "日本",
    "..",
    ".",
    "A",
    "a",
    "a%2fb",
    "x" * 128,
    "x" * 127 + "y",
    "日" * 100,
    "runs",
    "~",
    "-",
]


def test_every_odd_name_is_a_run_of_its_own_inside_the_root(
    open_seat: OpenSeat, tmp_path: Path, deskbook: Any
) -> None:
    for name in ODD:
        open_seat(run=name).do(Remember(text=f"unicorn {name}"), now=LATER)
    for name in ODD:
        assert texts(open_seat(run=name), LATER) == [f"unicorn {name}"]
    paths = {ledger_path(tmp_path, "default", name) for name in ODD}
    assert len({str(path).casefold() for path in paths}) == len(ODD)
    runs = tmp_path / "default" / "runs"
    assert {path.parent.parent for path in paths} == {runs}
    assert sorted(path.parent.name for path in paths) == sorted(path.name for path in runs.iterdir())


def test_a_call_without_a_time_makes_no_run(tmp_path: Path) -> None:
    with pytest.raises(ClockError, match="begins with its first call's simulated time"):
        Book.open(tmp_path, "default", "r")
    assert list(tmp_path.iterdir()) == []


def test_no_link_is_followed_to_a_live_ledger(open_seat: OpenSeat, tmp_path: Path) -> None:
    elsewhere = open_seat(root=tmp_path / "elsewhere")
    elsewhere.do(Remember(text="secret of another root"))
    elsewhere.book.close()
    place = ledger_path(tmp_path, "default", None)
    place.parent.mkdir(mode=0o700)
    place.symlink_to(elsewhere.path)
    with pytest.raises(StoreError, match="symbolic link"):
        open_seat(run="r", inherit="live")


def test_a_search_over_both_ledgers_says_which_a_hit_came_from(open_seat: OpenSeat) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn live", symbol="AAPL"))
    run = open_seat(run="r", inherit="live")
    run.do(Remember(text="unicorn run", symbol="AAPL"), now=LATER)
    body = run.book.search(run.caller(now=LATER), SearchRequest(query="unicorn", detailed=True)).body
    sources = {hit["text"]: hit.get("source") for hit in body["hits"]}
    assert sources == {"unicorn live": "live", "unicorn run": None}
    (retrieved,) = run.entries("memory.retrieved")
    assert '"source":"live"' in retrieved.content


def test_live_opens_the_files_of_no_run(open_seat: OpenSeat, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        open_seat(run=f"r{number}").do(Remember(text="unicorn"), now=LATER)
    opened: list[Path] = []
    right = SqliteEngine.__init__

    def watched(engine: SqliteEngine, path: Path, *given: Any, **named: Any) -> None:
        opened.append(path)
        right(engine, path, *given, **named)

    monkeypatch.setattr(SqliteEngine, "__init__", watched)
    live = open_seat()
    live.do(Remember(text="unicorn"))
    assert len(texts(live, query="unicorn")) == 1
    assert opened == [live.path]
