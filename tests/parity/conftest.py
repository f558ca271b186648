"""One strategy played twice, as a backtest and live, and what it left in the two ledgers made comparable."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from store.book import Book
from store.clock import parse_instant
from store.entry import Entry
from store.rows import EntryFilter

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = Path(__file__).with_name("live_server.py")
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
RUN = "run-1"

# What a run and a live ledger must differ in: when it was really written, random ids, and what is computed of both.
ASIDE = {"event_id", "recorded_at", "run_id", "content_salt", "content_sha256", "leaf_sha256", "chain_sha256"}
AN_ID = re.compile(r"\b(?:mem|prop|risk|dec|les|ths|ev|ret|ses|store)_[0-9a-hjkmnp-tv-z]{13}\b")
A_CURSOR = re.compile(r'(?<="cursor":")[\w-]+(?=")')


def load_harness() -> ModuleType:
    """configs/harness.py as a user's copy of it: a module of its own, outside every package."""
    spec = importlib.util.spec_from_file_location("harness", ROOT / "configs" / "harness.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["harness"] = module
    spec.loader.exec_module(module)
    return module


class Ordinals:
    """Gives each id the number of its first appearance, so that the n-th id here is the n-th there."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return AN_ID.sub(lambda found: self.name(found.group()), text)

    def name(self, found: str) -> str:
        return self.names.setdefault(found, f"{found.partition('_')[0]}#{len(self.names)}")


def comparable(entries: list[Entry]) -> list[dict[str, Any]]:
    """Every column of every entry, ids by order of appearance, without what must differ.

    The entries of the clock itself (a harness that moves it, its session) are no part of what a strategy did:
    they are left out, and the cuts that count entries are counted without them.
    """
    kept = [entry for entry in entries if entry.agent != "harness"]
    before = [0]
    for entry in entries:
        before.append(before[-1] + (entry in kept))
    ordinal, told = Ordinals(), []
    for place, entry in enumerate(kept, 1):
        row = {name: getattr(entry, name) for name in Entry.__slots__ if name not in ASIDE}
        content = json.loads(entry.content)
        if entry.event_type == "genesis":
            assert (content.pop("mode"), content.pop("run", None)) in {("simulated", RUN), ("live", None)}
        if "cut" in content:
            content["cut"] = before[content["cut"]]
        if "rendered" in content:
            content["rendered"] = A_CURSOR.sub(
                lambda found: _recut(found.group(), before), content["rendered"]
            )
        row["arguments_sha256"] = entry.arguments_sha256 is not None  # salted
        row |= {"sequence": place, "content": content}
        told.append(json.loads(ordinal(json.dumps(row, sort_keys=True))))
    return told


def spoken(replies: list[dict[str, Any]], *, counted: bool = True) -> list[Any]:
    """What a strategy was answered, ids by order and without the run's name.

    Unless `counted`, also without what counts the ledger's entries, for a harness that moves the clock adds some.
    """
    aside = {"run", "event_id"} if counted else {"run", "event_id", "sequence", "cursor"}
    told: list[Any] = json.loads(Ordinals()(json.dumps(_without(replies, aside))))
    return told


def _without(told: Any, aside: set[str]) -> Any:
    if isinstance(told, list):
        return [_without(item, aside) for item in told]
    if isinstance(told, dict):
        return {name: _without(item, aside) for name, item in told.items() if name not in aside}
    return told


def _recut(cursor: str, before: list[int]) -> str:
    fields = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return json.dumps([before[fields[0]], *fields[1:]]).replace('"', "'")


class Theatre:
    """Ways to play a strategy, each on a desk with a root of its own."""

    def __init__(self, folder: Path, harness: ModuleType) -> None:
        self.folder = folder
        self.harness = harness
        self.clock = folder / "clock"
        self.comparable = comparable
        self.spoken = spoken

    def backtest(self, strategy: Any, times: Iterable[datetime], *, moved: bool = False) -> list[Entry]:
        """Time comes with each call or, when it is `moved`, by advance_clock."""
        server = self.server("simulated")
        mover = replace(server, agent="harness") if moved else None
        anyio.run(self.harness.backtest, strategy, server, RUN, times, mover)
        return _entries(server.config.with_suffix(""), RUN)

    def live(self, strategy: Any, times: Iterable[datetime]) -> list[Entry]:
        """The wall clock is the test's: it is set when the harness would wait for the time to come."""
        server = replace(self.server("live"), command=(sys.executable, str(LAUNCHER), str(self.clock)))
        anyio.run(self.harness.live, strategy, server, times, self.set_clock)
        return _entries(server.config.with_suffix(""), None)

    def wall(self, strategy: Any, times: Iterable[datetime]) -> list[Entry]:
        """Live under the machine's own clock."""
        server = self.server("live")
        anyio.run(self.harness.live, strategy, server, times)
        return _entries(server.config.with_suffix(""), None)

    async def set_clock(self, now: datetime) -> None:
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(str(parse_instant(now.isoformat(), field="now")), encoding="ascii")
        fresh.replace(self.clock)

    def server(self, mode: str) -> Any:
        """The shipped server for the trader of a new desk, whose root is named like its config."""
        root = self.folder / f"{mode}-{len(list(self.folder.glob('*.toml')))}"
        config = root.with_suffix(".toml")
        agents = "\n".join(f'[agents.{agent}]\nprofile = "{agent}"' for agent in ("trader", "harness"))
        clock = f'[clock]\nmode = "{mode}"\ntimezone = "America/New_York"\n'
        store = f'[store]\nroot = {json.dumps(str(root))}\ndurability = "normal"\n'
        # By words: a run waits for its vectors, while live goes on with those that there are.
        embedding = '[embedding]\nprovider = "none"\n'
        config.write_text(f"{store}{clock}{embedding}{agents}\n", encoding="utf-8")
        return self.harness.Server(config, "trader", (sys.executable, "-P", "-m", "server"), ENVIRONMENT)


def _entries(root: Path, run: str | None) -> list[Entry]:
    book = Book.open(root, "default", run, create=False)
    try:
        return book.log(EntryFilter(limit=100_000))
    finally:
        book.close()


@pytest.fixture(scope="session")
def harness() -> ModuleType:
    return load_harness()


@pytest.fixture
def theatre(tmp_path: Path, harness: ModuleType) -> Theatre:
    return Theatre(tmp_path, harness)
