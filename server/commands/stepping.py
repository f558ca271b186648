"""review, alone in a terminal: one waiting memory after the other, each shown whole before the question."""

from __future__ import annotations

from typing import Final

import typer

from store.errors import ConfigError, DeskbookError, PermissionDenied
from store.review.items import ReviewItem
from store.review_commands import Approve, Reject

from .deciding import Desk, new_wording, tell, told
from .screen import say
from .wording import counted

CHOICES: Final = "a(pprove)  r(eject)  e(dit)  s(kip)  q(uit)"
PAGE: Final = 200


def step_through(desk: Desk) -> None:
    """Ask about every memory that waits, the oldest first, until there is none or the person leaves."""
    total, found = desk.book.review_queue(limit=PAGE)
    if not found:
        say("nothing waits for a person")
        return
    desk.caller()  # who they are is asked before, not between what they read and their answer
    skipped = 0
    for number, item in enumerate(found, 1):
        say()
        say(f"{number} of {total}")
        answer = _ask(desk, item)
        if answer == "q":
            return
        skipped += answer == "s"
    say()
    if total > len(found):
        desk.next_step(f"the first {len(found)} are through; `deskbook review` goes on")
    elif skipped:
        desk.next_step(f"{counted(skipped, 'memory was', 'memories were')} skipped: `deskbook review list`")
    else:
        say("nothing waits any more")


def _ask(desk: Desk, item: ReviewItem) -> str:
    """Show a memory until it is decided or left; gives the letter of the answer."""
    while True:
        desk.show(item)
        answer = str(typer.prompt(CHOICES, err=True)).strip().lower()[:1]
        if answer in ("s", "q"):
            return answer
        if answer not in ("a", "r", "e"):
            continue
        try:
            if _decided(desk, item, answer):
                return answer
        except (PermissionDenied, ConfigError):
            raise
        except DeskbookError as fault:
            typer.echo(told(fault), err=True)
            item = desk.book.review_item(item.version.memory_id)
            if item.version.review_state != "pending":
                return answer


def _decided(desk: Desk, item: ReviewItem, answer: str) -> bool:
    memory_id, shown = item.version.memory_id, item.shown_sha256
    if answer == "a":
        tell(desk, "approved", desk.decide(Approve(memory_id=memory_id, shown=shown)))
    elif answer == "r":
        reason = typer.prompt("Why", err=True)
        tell(desk, "rejected", desk.decide(Reject(memory_id=memory_id, shown=shown, reason=reason)))
    else:
        try:
            text = new_wording(None, lambda: item.version.text)
        except typer.Abort:
            return False
        tell(
            desk, "approved in other words", desk.decide(Approve(memory_id=memory_id, shown=shown, text=text))
        )
    return True
