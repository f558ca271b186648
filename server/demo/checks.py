"""The deskbook command on a demo's ledger, run as a person would: why a trade came about, and is all of it sound."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import anyio
from rich.console import Console

from .desk import DemoFailed, command_arguments, server_environment
from .place import DemoPlace
from .screen import fold_story, say, tell
from .strategy import Reply

COMMAND_SECONDS = 120
STORY = ("memory.retrieved", "thesis.opened", "decision.recorded", "order_action.recorded", "order.outcome")
"""What a trade's first evening holds, in this order."""


async def check_run(place: DemoPlace, screen: Console) -> None:
    """Show that a finished run was shown nothing later than its clock, and that its ledger is sound.

    Raises DemoFailed when `deskbook leaks` or `deskbook verify` finds anything. The live ledger is verified alone:
    there is no clock of its own that it could have seen past.
    """
    checks = (("leaks", place.name), ("verify", "--run", place.name)) if place.run else (("verify",),)
    for words in checks:
        tell(screen, ["", f"deskbook {' '.join(words)}"])
        for line in await command(place, *words):
            say(screen, f"  {line}")


async def tell_story(place: DemoPlace, memory_id: str, screen: Console) -> None:
    """Show `deskbook explain` of a trade, folded, and hold the ledger to it.

    The search that the decision names, the thesis, the decision, the intent and its first outcome must stand in this
    order: DemoFailed otherwise.
    """
    tell(
        screen, ["", f"deskbook explain {memory_id}", *fold_story(await command(place, "explain", memory_id))]
    )
    told = json.loads((await command(place, "explain", memory_id, "--json"))[0])
    check_story(memory_id, told["steps"])


def check_story(memory_id: str, steps: Sequence[Reply]) -> None:
    """Raise DemoFailed unless the steps tell a trade in the order of `STORY`, from the search its decision names."""
    firsts: dict[str, Reply] = {}
    for step in steps:
        firsts.setdefault(step["event"], step)
    missing = [event for event in STORY if event not in firsts]
    if missing:
        raise DemoFailed(f"The story of {memory_id} lacks {', '.join(missing)}.")
    named = firsts["decision.recorded"].get("retrieval_id")
    searches = [s for s in steps if s["event"] == STORY[0] and s["subject"] == named]
    line = [*searches[:1], *(firsts[event] for event in STORY[1:])]
    places = [step["sequence"] for step in line]
    if not searches or places != sorted(places):
        raise DemoFailed(f"{memory_id} does not rest on a search and an intent recorded before it was sent.")


async def command(place: DemoPlace, *words: str) -> list[str]:
    """Run a deskbook command on a desk's ledger; its lines. DemoFailed unless it exits with 0."""
    with anyio.fail_after(COMMAND_SECONDS):
        done = await anyio.run_process(
            [sys.executable, *command_arguments(place, *words)],
            check=False,
            env=server_environment(),
            cwd=place.root,
        )
    said = (done.stdout or done.stderr).decode("utf-8", "replace").splitlines()
    if done.returncode != 0:
        raise DemoFailed("\n  ".join([f"deskbook {' '.join(words)} exited with {done.returncode}:", *said]))
    return said
