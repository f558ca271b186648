"""demo: two agents trade a year of real prices on one ledger, then one trade is explained from memory."""

from __future__ import annotations

from typing import Annotated

import typer

from .place import RootOption

DEMO_DAYS = 260


def demo(
    root: RootOption = None,
    days: Annotated[int, typer.Option(min=1, help="Trading days to live through.")] = DEMO_DAYS,
) -> None:
    """Run two agents through real prices, each with a server of its own, and explain one trade. Exit 1 on failure."""
    # The SDK's client and rich take most of a second to import, which no other command should pay.
    from ..demo.run import run_demo

    run_demo(root, days)
