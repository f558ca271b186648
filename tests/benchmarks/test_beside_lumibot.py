"""Search, write, state and the record of a search beside Lumibot's own memory, both on the same memories."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from server.exporting import Exports
from server.settings import Settings
from store import Book, Caller, Filter, SearchRequest
from store.commands import ReportPositions
from store.export.exporter import bring_up_to_date
from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import Print, Writing

    from store.commands import Command

pytestmark = pytest.mark.bench

SIZES = (1_000, 10_000, 50_000)
ROUNDS = 15
SEARCHES = 25
"""Rounds of searching: what a search costs depends much on how common its words are."""

LEAST = 3
BUDGET = 40.0
"""Seconds for one comparison at one size; after these no round begins, once there were LEAST."""

EACH = 5
"""So many times ours does what theirs does once, in every round."""

VERSION = "4.6.30"
HELD = [f"SYM{number}" for number in range(20)]
HERE = Path(__file__).resolve().parent
CALLER = Caller(agent="bench", profile="solo", session_id="bench", tool="bench")

KEPT = """
SELECT {columns} FROM memory_events AS e JOIN memory_retrievals AS r USING (sequence)
WHERE e.event_type = 'memory.retrieved' AND sequence > ? AND sequence <= ?
"""


@pytest.fixture(scope="session")
def lumibot_python() -> Path:
    """The interpreter of Lumibot's environment, which the tests beside other clients make and use too."""
    interop = runpy.run_path(str(HERE.parent / "interop" / "conftest.py"))
    needs = next(row.needs for row in interop["ROWS"] if row.driver == "lumibot_client")
    assert f"lumibot=={VERSION}" in needs
    return Path(interop["install"]("lumibot_client", needs))


class Lumibot:
    """Lumibot's store in a process of its own; see lumibot_driver.py."""

    def __init__(self, python: Path, folder: Path) -> None:
        folder.mkdir()
        self._said = (folder / "said.txt").open("wb")
        self._process = subprocess.Popen(
            [str(python), str(HERE / "lumibot_driver.py"), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            cwd=folder,
            env={
                "HOME": str(folder),
                "PATH": os.environ["PATH"],
                "LUMIBOT_CACHE_FOLDER": str(folder),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )

    def ask(self, do: str, **terms: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **terms}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, Path(self._said.name).read_text(encoding="utf-8", errors="replace")[-4_000:]
        return dict(json.loads(line))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._said.close()


@dataclass
class Topic:
    """One table: a row for each comparison at each size."""

    title: str
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def times(self, name: str, found: tuple[list[float], list[float]]) -> None:
        ours, theirs = (1e3 * median(seconds) for seconds in found)
        rounds = f"{len(found[0])} / {len(found[1])}"
        self.rows.append((name, f"{ours:,.2f} ms", f"{theirs:,.2f} ms", f"{theirs / ours:,.1f}", rounds))

    def sizes(self, name: str, ours: list[int], theirs: list[int]) -> None:
        mine, other = median(ours), median(theirs)
        rounds = f"{len(ours)} / {len(theirs)}"
        self.rows.append((name, f"{mine:,.0f} B", f"{other:,.0f} B", f"{other / mine:,.1f}", rounds))


def alternate(
    ours: Callable[[int], object],
    theirs: Callable[[int], float],
    beside: Callable[[], AbstractContextManager[object]] = nullcontext,
    rounds: int = ROUNDS,
) -> tuple[list[float], list[float]]:
    """Seconds of ours and of theirs, in turns; both are told the number of the round."""
    mine: list[float] = []
    other: list[float] = []
    started = time.monotonic()
    for number in range(rounds):
        if number >= LEAST and time.monotonic() - started > BUDGET:
            break
        with beside():
            for _ in range(EACH):
                began = time.perf_counter()
                ours(number)
                mine.append(time.perf_counter() - began)
        other.append(theirs(number))
    return mine, other


@dataclass
class Pair:
    """Both stores with the same memories in them."""

    size: int
    root: Path
    book: Book
    lumibot: Lumibot
    writing: Writing
    calls: Iterator[int] = field(default_factory=count)

    @property
    def path(self) -> Path:
        return ledger_path(self.root, "default", None)

    def caller(self) -> Caller:
        """Who asks: a new model call each time."""
        return replace(CALLER, model_call_id=f"call-{next(self.calls)}")

    def write(self, number: int) -> None:
        self.book.execute(self.caller(), self.writing.command())

    def writes_of_lumibot(self, export: bool) -> Callable[[int], float]:
        """What times one of its writes, and sees to it that it exported as it was told."""

        def write(number: int) -> float:
            answer = self.lumibot.ask("write", memory=memory(self.writing.command()), export=export)
            assert answer["exported"] is export
            return float(answer["seconds"])

        return write

    def export(self) -> None:
        bring_up_to_date(self.root, self.path, self.book.snapshot)

    @contextmanager
    def served(self) -> Iterator[Callable[[], None]]:
        """Export in the background as a server does; what is given says that a call ended."""
        exports = Exports(
            Settings.model_validate({"store": {"root": self.root}}), lambda key: self.book.snapshot()
        )
        try:
            yield lambda: exports.touched(("default", None))
        finally:
            exports.stop()

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """Export in the background without a pause."""
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                self.export()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def memory(command: Command) -> dict[str, Any]:
    """A command as the driver reads it."""
    return {"kind": type(command).__name__, **asdict(command)}


def fill(lumibot: Lumibot, writing: Writing, size: int, path: Path) -> None:
    """Fill Lumibot's store with what `Writing` gives first."""
    with path.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(memory(writing.command())) + "\n" for _ in range(size))
    assert lumibot.ask("fill", memories=str(path)) == {"stored": size}


def compare_writes(pair: Pair, topic: Topic) -> None:
    topic.times(f"{pair.size:,}, both exports off", alternate(pair.write, pair.writes_of_lumibot(False)))
    pair.lumibot.ask("write", memory=memory(pair.writing.command()), export=True)
    pair.export()
    compare_served_writes(pair, topic, "both exports on")
    found = alternate(pair.write, pair.writes_of_lumibot(True), pair.exporting)
    topic.times(f"{pair.size:,}, both exports on, ours without a pause", found)


def compare_served_writes(pair: Pair, topic: Topic, name: str) -> None:
    """Lumibot exports within each write; ours beside them, as a server does."""
    with pair.served() as touched:

        def ours(number: int) -> None:
            pair.write(number)
            touched()

        topic.times(f"{pair.size:,}, {name}", alternate(ours, pair.writes_of_lumibot(True)))


def compare_states(pair: Pair, topic: Topic) -> None:
    def theirs(new_day: bool = False, export: bool = False) -> float:
        answer = pair.lumibot.ask("state", new_day=new_day, export=export)
        return float(answer["seconds"])

    def report() -> None:
        held = [{"symbol": symbol, "quantity": "10", "last_price": "101.25"} for symbol in HELD]
        pair.book.execute(pair.caller(), ReportPositions(positions=held))

    def ours(number: int) -> None:
        pair.book.state(pair.caller())

    def after_report(number: int) -> None:
        report()
        ours(number)

    theirs()
    topic.times(f"{pair.size:,}, nothing held", alternate(ours, lambda number: theirs()))
    report()
    pair.lumibot.ask("hold", symbols=HELD)
    theirs()
    topic.times(f"{pair.size:,}, {len(HELD)} held", alternate(ours, lambda number: theirs()))
    new_day = f"{pair.size:,}, {len(HELD)} held, a new day"
    topic.times(new_day, alternate(after_report, lambda number: theirs(new_day=True)))
    with pair.served() as touched:

        def served(number: int) -> None:
            after_report(number)
            touched()

        found = alternate(served, lambda number: theirs(new_day=True, export=True))
        topic.times(f"{new_day}, both exports on", found)


def compare_searches(pair: Pair, topic: Topic, kept: Topic) -> int:
    """The same queries at each size; how many searches were made of Lumibot."""
    asked = type(pair.writing)(11)
    every = [(asked.query(), None) for _ in range(SEARCHES)]
    narrowed = [(asked.query(), asked.symbol()) for _ in range(SEARCHES)]
    made = compare_search(pair, topic, kept, f"{pair.size:,}, all symbols", every)
    return made + compare_search(pair, topic, kept, f"{pair.size:,}, one symbol", narrowed)


def compare_search(
    pair: Pair, topic: Topic, kept: Topic, name: str, questions: Sequence[tuple[str, str | None]]
) -> int:
    left: list[dict[str, Any]] = []

    def ours(number: int) -> None:
        query, symbol = questions[number]
        pair.book.search(pair.caller(), SearchRequest(query=query, conditions=Filter(symbol=symbol)))

    def theirs(number: int) -> float:
        query, symbol = questions[number]
        left.append(pair.lumibot.ask("search", query=query, symbol=symbol))
        return float(left[-1]["seconds"])

    before = pair.book.head().sequence
    found = alternate(ours, theirs, rounds=SEARCHES)
    whole, rendered = bytes_kept(pair.path, before, pair.book.head().sequence)
    assert len(whole) == len(found[0])
    topic.times(name, found)
    kept.sizes(name, whole, [each["bytes"] for each in left])
    kept.sizes(f"{name}: its text", rendered, [each["rendered"] for each in left])
    return len(left)


def bytes_kept(path: Path, after: int, until: int) -> tuple[list[int], list[int]]:
    """For each search the bytes of its entry and its projection's row, and of the text that was handed over."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        rows = list(connection.execute(KEPT.format(columns="e.*, r.*"), (after, until)))
        texts = connection.execute(
            KEPT.format(columns="json_extract(e.content, '$.rendered')"), (after, until)
        )
        return [sum(map(size_of, row)) for row in rows], [size_of(text) for (text,) in texts]


def size_of(value: Any) -> int:
    """Bytes of a value in a row: its own, its UTF-8, or 8 for a number."""
    if value is None or isinstance(value, bytes):
        return len(value or b"")
    return len(value.encode()) if isinstance(value, str) else 8


def test_beside_lumibot(
    show: Print,
    writing: Writing,
    larger: Callable[[int], Path],
    lumibot_python: Path,
    tmp_path: Path,
) -> None:
    """Ours with durability full; Lumibot's store as it comes, but exporting only where a row says so."""
    topics = {
        "search": Topic("A recorded search beside Lumibot's, same queries, its export off"),
        "write": Topic("A write beside Lumibot's (ours exports as a server does, unless said)"),
        "state": Topic("The state beside Lumibot's, ours recorded; on a new day positions are reported too"),
        "kept": Topic("Bytes kept for each search: all columns of its rows, indexes left out"),
    }
    for size in SIZES:
        root = larger(size).rename(tmp_path / f"ours-{size}")
        with (
            closing(Lumibot(lumibot_python, tmp_path / f"theirs-{size}")) as lumibot,
            closing(Book.open(root, "default")) as book,
        ):
            assert lumibot.ask("hello") == {"version": VERSION}
            fill(lumibot, type(writing)(1), size, tmp_path / f"{size}.jsonl")
            pair = Pair(size, root, book, lumibot, writing)
            compare_writes(pair, topics["write"])
            compare_states(pair, topics["state"])
            made = compare_searches(pair, topics["search"], topics["kept"])
            compare_served_writes(pair, topics["write"], f"both exports on, after {made} searches of it")
    for topic in topics.values():
        show(topic.title, ("memories", "ours", "theirs", "ratio", "timed"), topic.rows)
