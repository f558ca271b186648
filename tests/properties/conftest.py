"""A ledger that is written step by step under a clock set by hand, with ids from a fixed series."""

from __future__ import annotations

import random
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from store import Book, Caller, SearchRequest, ids
from store.commands import (
    CloseThesis,
    Command,
    Decide,
    FlagMemory,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from store.errors import DeskbookError
from store.paths import ledger_path

START = 1_772_461_800_000_000


class _Clock:
    def __init__(self) -> None:
        self.us = START

    def now(self) -> int:
        return self.us


class History:
    """One open ledger, and what was done to it; two with the same steps hold the same ids."""

    def __init__(self, root: Path, run: str | None) -> None:
        self.clock = _Clock()
        self.run = run
        self.path = ledger_path(root, "s", run)
        self.book = Book.open(root, "s", run, begins=START, durability="normal", clock=self.clock)
        self.ids: list[str] = []

    def caller(self, agent: str = "ann") -> Caller:
        return Caller(agent, "solo", f"ses-{agent}", "tool", now=None if self.run is None else self.clock.us)

    def step(self, step: tuple[Any, ...]) -> None:
        """Do one step; what the ledger refuses leaves nothing."""
        kind, text, symbol, tags, target, evidence, agent, later = step
        self.clock.us += later
        about = self.ids[target % len(self.ids)] if self.ids else "mem_none"
        who = self.caller(agent)
        before = self.book.head()
        try:
            if kind == "search":
                self.book.search(who, SearchRequest(query=text))
            elif kind == "state":
                self.book.state(who)
            elif kind == "get":
                self.book.get(who, about)
            else:
                command = _command(kind, text, symbol, tags, about, evidence, self.clock.us)
                self.ids.append(self.book.execute(who, command).id)
        except DeskbookError:
            assert self.book.head() == before


def _command(
    kind: str, text: str, symbol: str | None, tags: tuple[str, ...], about: str, evidence: Any, now: int
) -> Command:
    common: dict[str, Any] = {"text": text, "symbol": symbol, "tags": tags}
    made: dict[str, Callable[[], Command]] = {
        "note": lambda: Remember(**common, expires_at=now + 1_500 if len(tags) == 3 else None),
        "replace": lambda: Remember(**common, supersedes=about),
        "propose": lambda: Propose(**common, action="buy"),
        "risk": lambda: NoteRisk(**common),
        "decide": lambda: Decide(**common, action="hold", evidence=evidence),
        "lesson": lambda: ProposeLesson(**common, outcome=evidence),
        "open": lambda: OpenThesis(**common, direction="long", review_by=now + 500),
        "update": lambda: UpdateThesis(thesis_id=about, text=text, tags=tags or None, symbol=symbol),
        "close": lambda: CloseThesis(thesis_id=about, result=text, pnl="1.50"),
        "resolve": lambda: ResolveMemory(
            memory_id=about, status="retired" if tags else "withdrawn", note=text
        ),
        "flag": lambda: FlagMemory(memory_id=about, reason="stale", note=text),
    }
    return made[kind]()


@pytest.fixture(scope="session")
def new_history() -> Callable[..., Any]:
    """A context manager: a fresh ledger, of a run unless `run` is None, that is gone afterwards."""

    @contextmanager
    def new(run: str | None = "r1") -> Iterator[History]:
        folder = Path(tempfile.mkdtemp())
        series = random.Random(1)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(secrets, "randbits", series.getrandbits)
            ids._places.begin()
            history = History(folder, run)
            try:
                yield history
            finally:
                history.book.close()
                shutil.rmtree(folder)

    return new
