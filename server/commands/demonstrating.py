"""demo: two agents trade a year of real prices and explain one trade; then a second run inherits live memory."""

from __future__ import annotations

from typing import Annotated

import typer

from ..demo import DEFAULT_DAYS
from .place import RootOption


def demo(
    root: RootOption = None,
    days: Annotated[int, typer.Option(min=1, help="Trading days to live through.")] = DEFAULT_DAYS,
) -> None:
    """Two agents trade real prices and explain a trade; a second run inherits live memory. Exit 1 on failure."""
    # The SDK's client and rich take most of a second to import, which no other command should pay.
    from ..demo.run import run_demo

    run_demo(root, days)
