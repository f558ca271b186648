"""What the demo shows: plain lines, a progress bar on a terminal, one line a month elsewhere."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .market import MarketView
from .place import DemoPlace
from .strategy import Reply


class Steps(Protocol):
    """Is told of each day that is over."""

    def __call__(self, view: MarketView, calls: int) -> None:
        """Show that the view's day is over, after `calls` tool calls in all."""
        ...


def say(console: Console, text: str, style: str = "") -> None:
    """Print text as it is: no markup, no wrapping, so that paths and commands can be copied."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def showing_days(console: Console, days: int) -> Generator[Steps]:
    """Show the days go by: a progress bar on a terminal, else a line at the end of each month."""
    if not console.is_terminal:
        yield _monthly(console, days)
        return
    columns = (
        TextColumn("{task.fields[day]}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} days, {task.fields[calls]} calls"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=days, day="", calls=0)

        def step(view: MarketView, calls: int) -> None:
            bar.update(task, advance=1, day=str(view.day), calls=calls)

        yield step


def explore_lines(place: DemoPlace, trade: str) -> list[str]:
    """Commands, ready to paste, that look into the ledger which a demo left."""
    command = Path(sys.executable).with_name("deskbook")
    words = [str(command)] if command.exists() else [sys.executable, "-m", "server"]
    ledger = ["--config", str(place.config), "--run", place.run]
    looks: Iterable[tuple[str, ...]] = (
        ("status",),
        ("log",),
        ("log", "--kind", "decision"),
        ("show", trade),
        ("verify",),
    )
    return [shlex.join([*words, *look, *ledger]) for look in looks]


def state_lines(state: Reply) -> list[str]:
    """The compact state, as far as a person wants it at the end of a demo."""
    lines = [
        f"as of {state['as_of']}, strategy {state['strategy']}, run {state['run']}, agent {state['agent']}"
    ]
    for title, key in (("open theses", "open_theses"), ("validated lessons", "validated_lessons")):
        entries = state[key]
        lines.append(f"{title}: {len(entries)}")
        lines += [f"  {_line(entry)}" for entry in entries]
    lines.append("the agent's last entries:")
    lines += [f"  {_line(entry)}" for entry in state["recent"]]
    return lines


def _line(entry: Mapping[str, Any] | str) -> str:
    text = entry if isinstance(entry, str) else f"{entry.get('id', '')} {entry.get('text', '')}"
    return " ".join(text.split())[:150]


def _monthly(console: Console, days: int) -> Steps:
    done = 0
    month = 0

    def step(view: MarketView, calls: int) -> None:
        nonlocal done, month
        done += 1
        if view.day.month != month or done == days:
            say(console, f"{view.day}: day {done} of {days}, {calls} calls")
        month = view.day.month

    return step
