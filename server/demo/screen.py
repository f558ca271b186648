"""What the demo shows: plain lines, a progress bar on a terminal, one line a month elsewhere."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .answer import Explanation
from .market import MarketView
from .place import DemoPlace
from .strategy import Reply

MIN_WIDTH = 60
LINE_SHOWN, INTENT_SHOWN = 160, 400
_HOLDING = ": Hold "
_FOLDED = ("was shown", "searched for", "observed", "thesis.updated")


class Steps(Protocol):
    """Is told of each day that is over."""

    def __call__(self, view: MarketView, calls: int) -> None:
        """Show that the view's day is over, after `calls` tool calls in all."""
        ...


def say(console: Console, text: str, style: str = "") -> None:
    """Print text as it is: no markup, no wrapping, so that paths and commands can be copied."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def tell(console: Console, lines: Iterable[str]) -> None:
    """Print headings (flush left) in bold and indented answers wrapped to the screen's width."""
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if not depth:
            say(console, line, "bold")
            continue
        wrapped = textwrap.wrap(
            line.lstrip(),
            width=max(MIN_WIDTH, console.width),
            initial_indent=" " * depth,
            subsequent_indent=" " * (depth + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part in wrapped:
            say(console, part)


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


def explore_lines(place: DemoPlace, explained: Explanation, both: str) -> list[str]:
    """Commands, ready to paste, that look into the ledgers which a demo left; `both` is the last search's id."""
    heir = place.heir()
    return [
        *look_lines(
            place,
            ("status",),
            ("log", "--symbol", explained.symbol),
            ("log", "--event", "warning"),
            ("explain", explained.action_id),
            ("show", explained.retrieval_id),
            ("leaks", place.name),
            ("verify",),
        ),
        *look_lines(place.live(), ("log",)),
        *look_lines(heir, ("run", "show", heir.name), ("show", both), ("leaks", heir.name), ("verify",)),
    ]


def look_lines(place: DemoPlace, *looks: Sequence[str]) -> list[str]:
    """Deskbook commands on one desk's ledger, ready to paste."""
    return [shlex.join([*_command(), *look, "--config", str(place.config)]) for look in looks]


def _command() -> list[str]:
    """How to start deskbook from this machine's shell: by name if that is this one, else by path."""
    own, found = Path(sys.executable).with_name("deskbook"), shutil.which("deskbook")
    if found is not None and Path(found) == own:
        return ["deskbook"]
    return [str(own)] if own.exists() else [sys.executable, "-m", "server"]


def state_lines(state: Reply) -> list[str]:
    """The compact state, as far as a person wants it at the end of a demo."""
    theses, lessons = state["open_theses"], state["validated_lessons"]
    held = [f"{row['quantity']} {row['symbol']}" for row in state["current_position_rationales"]]
    waiting = [f"{order['client_order_id']} {order['status']}" for order in state["unreconciled_orders"]]
    return [
        f"  As of {state['as_of']}; strategy {state['strategy']}, run {state['run']}, agent {state['agent']}.",
        f"  Held: {', '.join(held) or state.get('positions_reason', 'nothing')}.",
        f"  Unreconciled orders: {', '.join(waiting) or 'none'}.",
        *(f"  Warning: {_start(warning['message'])}" for warning in state["warnings"]),
        f"  Open theses: {len(theses)}",
        *(f"    {thesis['id']} {_start(thesis['text'])}" for thesis in theses),
        f"  Validated lessons: {len(lessons)} (only outcomes that a harness observed make a lesson validated)",
        *(f"    {lesson['id']} {_start(lesson['text'])}" for lesson in lessons),
        "  Its own last entries:",
        *(f"    {_start(line)}" for line in state["recent"]),
    ]


def fold_story(lines: Sequence[str]) -> list[str]:
    """What `deskbook explain` says, cut for a screen: its first evening whole, of later ones only what was done.

    A line that stands for steps left out says how many.
    """
    head, *steps = lines
    told, hidden, answered = [f"  {head}"], 0, False
    for step in steps:
        what = step.strip().split("  ", 3)[-1]
        if answered and (what.startswith(_FOLDED) or _HOLDING in what):
            hidden += 1
            continue
        if hidden:
            told.append(f"    ({hidden} more: shown, searched, observed, updated, held)")
            hidden = 0
        longest = INTENT_SHOWN if what.startswith("intended") else LINE_SHOWN
        told.append(f"  {_start(step.strip(), longest)}")
        answered = answered or what.startswith("outcome")
    return told


def _start(text: str, longest: int = LINE_SHOWN) -> str:
    return textwrap.shorten(text, longest, placeholder=" ...")


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
