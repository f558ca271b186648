"""demo: agents trade a year of real prices and explain one trade; then a second run inherits live memory."""

from __future__ import annotations

from typing import Annotated

import typer

from ..demo import DEFAULT_DAYS, LIVE_DAYS
from .place import RootOption

DaysOption = Annotated[
    int | None,
    typer.Option(min=1, help=f"Trading days: {DEFAULT_DAYS}, or {LIVE_DAYS} with --live, unless told."),
]
LiveOption = Annotated[bool, typer.Option("--live", help="On the wall clock: a real trading day a second.")]


def demo(root: RootOption = None, days: DaysOption = None, live: LiveOption = False) -> None:
    """Agents trade real prices and explain a trade; a second run inherits live memory. Exit 1 on failure."""
    # The SDK's client and rich take most of a second to import, which no other command should pay.
    if live:
        from ..demo.live import run_live

        run_live(root, days or LIVE_DAYS)
    else:
        from ..demo.run import run_demo

        run_demo(root, days or DEFAULT_DAYS)
