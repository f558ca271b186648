"""Lumibot's own MemoryStore, asked line by line: it runs in Lumibot's environment and times itself.

    .venv-interop/lumibot_client/bin/python tests/benchmarks/lumibot_driver.py FOLDER

Each line on stdin is a JSON object that says what to `do`; each line on stdout is the answer. Whatever Lumibot
itself prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EXPORT = "LUMIBOT_MEMORY_EXPORT_PARQUET"
AGENT = "bench"


class Bot:
    """A strategy as far as the store asks it: a name, a clock and positions."""

    name = "bench"

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 14, 30, tzinfo=UTC)
        self.held: list[Any] = []

    def get_datetime(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def get_positions(self, include_cash_positions: bool = True) -> list[Any]:
        return self.held

    def get_last_price(self, asset: Any) -> float:
        return 101.25


class Driver:
    """What a line can ask for; each answer that was timed says its `seconds`."""

    def __init__(self, folder: Path) -> None:
        from lumibot.components.memory import MemoryStore  # once its words go to stderr

        self.bot = Bot()
        self._exporting(False)
        self.store = MemoryStore(self.bot, root_dir=folder)
        self.calls = 0

    def hello(self) -> dict[str, Any]:
        return {"version": version("lumibot")}

    def fill(self, memories: str) -> dict[str, Any]:
        """Let the store write all memories of a file, by its own methods; none waits for the disk."""
        shared = self.store._connect()
        shared.execute("PRAGMA synchronous = OFF")
        self.store._connect = lambda: shared
        with Path(memories).open(encoding="utf-8") as lines:
            stored = sum(self._write(json.loads(line)) for line in lines)
        del self.store._connect
        shared.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shared.close()
        return {"stored": stored}

    def write(self, memory: dict[str, Any], export: bool) -> dict[str, Any]:
        return self._told(lambda: self._write(memory), export)

    def search(self, query: str, symbol: str | None) -> dict[str, Any]:
        """Search, and say what the search left behind: the bytes of its rows, and of the text handed over."""
        before = self._rows("SELECT max(sequence) FROM memory_events")[0][0]
        found: dict[str, Any] = {}
        call = self._call()
        taken = timed(lambda: found.update(self.store.search(query, symbol=symbol, **call)))
        kept = self._rows("SELECT * FROM memory_retrievals WHERE retrieval_id = ?", found["retrieval_id"])
        events = self._rows("SELECT * FROM memory_events WHERE sequence > ?", before)
        (rendered,) = (size_of(row["rendered_text"]) for row in kept)
        stored = sum(size_of(value) for row in [*kept, *events] for value in tuple(row))
        return {"seconds": taken, "bytes": stored, "rendered": rendered}

    def hold(self, symbols: list[str]) -> dict[str, Any]:
        assets = [SimpleNamespace(symbol=symbol, asset_type="stock") for symbol in symbols]
        self.bot.held = [SimpleNamespace(asset=asset, quantity=10) for asset in assets]
        return {"held": len(self.bot.held)}

    def state(self, new_day: bool, export: bool) -> dict[str, Any]:
        """The state as its prompt shows it: held symbols are named, and the section is JSON."""
        self.bot.now += timedelta(days=new_day)
        symbols = sorted(position.asset.symbol for position in self.bot.held)
        return self._told(
            lambda: json.dumps(self.store.compact_state(symbols=symbols), sort_keys=True), export
        )

    def _told(self, work: Callable[[], object], export: bool) -> dict[str, Any]:
        """How long it took, and whether the store wrote its Parquet files anew."""
        before = self._parquet()
        self._exporting(export)
        taken = timed(work)
        self._exporting(False)
        return {"seconds": taken, "exported": self._parquet() != before}

    def _parquet(self) -> dict[str, int]:
        return {file.name: file.stat().st_mtime_ns for file in self.store.strategy_dir.glob("*.parquet")}

    def _write(self, memory: dict[str, Any]) -> int:
        text, symbol, call = memory["text"], memory["symbol"], self._call()
        if memory["kind"] == "Remember":
            self.store.remember(text, metadata={"symbol": symbol}, tags=memory["tags"], **call)
        elif memory["kind"] == "Decide":
            terms = {"action": memory["action"], "evidence": memory["evidence"]}
            self.store.remember_decision(text, symbol=symbol, **terms, **call)
        elif memory["kind"] == "NoteRisk":
            self.store.remember_risk_note(text, symbol=symbol, **call)
        else:
            terms = {"direction": memory["direction"]}
            self.store.open_thesis(text, symbol=symbol, metadata=terms, **call)
        return 1

    def _call(self) -> dict[str, str]:
        """Who asks: a new model call each time."""
        self.calls += 1
        return {"agent_name": AGENT, "model_call_id": f"call-{self.calls}"}

    def _exporting(self, on: bool) -> None:
        os.environ[EXPORT] = "1" if on else "0"

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        connection = self.store._connect()
        try:
            return list(connection.execute(statement, values).fetchall())
        finally:
            connection.close()


def timed(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def size_of(value: Any) -> int:
    """Bytes of a value in a row: its UTF-8, or 8 for a number."""
    if value is None:
        return 0
    return len(value.encode()) if isinstance(value, str) else 8


def main() -> None:
    """Answer lines until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    driver = Driver(Path(sys.argv[1]))
    for line in sys.stdin:
        asked = json.loads(line)
        answer = getattr(driver, asked.pop("do"))(**asked)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
