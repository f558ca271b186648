"""The deskbook command on a demo's ledger, run as a person would: what stands in the record, and is it sound."""

from __future__ import annotations

import json
import sys

import anyio
from rich.console import Console

from .answer import Explanation
from .desk import DemoFailed, command_arguments, server_environment
from .place import DemoPlace
from .screen import say, tell

COMMAND_SECONDS = 120


async def check_run(place: DemoPlace, screen: Console) -> None:
    """Show that a finished run was shown nothing later than its clock, and that its ledger is sound.

    Raises DemoFailed when `deskbook leaks` or `deskbook verify` finds anything.
    """
    for words in (("leaks", place.name), ("verify", "--run", place.name)):
        tell(screen, ["", f"deskbook {' '.join(words)}"])
        for line in await command(place, *words):
            say(screen, f"  {line}")


async def check_order(place: DemoPlace, screen: Console, explained: Explanation) -> None:
    """Hold what memory said about the search against the ledger: the search must stand before the decision."""
    search, decision = [
        json.loads((await command(place, "show", name, "--json"))[0])
        for name in (explained.retrieval_id, explained.decision_id)
    ]
    query, handed = search["content"]["query"], len(search["content"]["selected"])
    asked = f'{search["agent"]} searches for "{query}" and is handed {handed} memories'
    decided = f"{decision['agent']} decides, naming that search"
    lines = [
        f"  entry {entry['sequence']}, {entry['effective_at']}: {what}"
        for entry, what in ((search, asked), (decision, decided))
    ]
    tell(screen, ["And the ledger's own record (deskbook show)", *lines])
    named = decision["retrieval_id"] == explained.retrieval_id
    if not named or search["sequence"] >= decision["sequence"]:
        raise DemoFailed(f"Decision {explained.decision_id} does not rest on a search recorded before it.")


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
