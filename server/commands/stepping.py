"""review, alone in a terminal: one waiting memory after the other, each shown whole before the question."""

from __future__ import annotations

from typing import Final

import typer

from store.errors import ConfigError, DeskbookError, PermissionDenied
from store.review.items import ReviewItem
from store.review_commands import Approve, Reject

from .deciding import Desk, ask_reason, new_wording, tell, told
from .questions import ask
from .screen import one_line, say
from .wording import counted

WORDS: Final = ("approve", "reject", "edit", "skip", "quit")
CHOICES: Final = "  ".join(f"{word[0]}({word[1:]})" for word in WORDS)
PAGE: Final = 200


def step_through(desk: Desk) -> None:
    """Ask about every memory that waits, the oldest first, until there is none or the person leaves."""
    total, found = desk.book.review_queue(limit=PAGE)
    if not found:
        say("nothing waits for a person")
        return
    desk.check_reviewer()  # and asked for the passphrase at the first decision, once they have seen what it is about
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
    """Show a memory, again where it was changed, until it is decided or left; gives the letter of the answer."""
    desk.show(item)
    while True:
        answer = _choice()
        if answer in ("s", "q"):
            return answer
        try:
            if _decided(desk, item, answer):
                return answer
        except (PermissionDenied, ConfigError):
            raise
        except DeskbookError as fault:
            typer.echo(told(fault), err=True)
            before, item = item, desk.book.review_item(item.version.memory_id)
            if item.version.review_state != "pending":
                return answer
            if item.shown_sha256 != before.shown_sha256:
                desk.show(item)


def _choice() -> str:
    """The letter of what a person chose, as a letter or as the word that begins with it; leaving is quitting."""
    while True:
        try:
            typed = ask(CHOICES).lower()
        except typer.Abort:
            return "q"
        for word in WORDS:
            if typed and word.startswith(typed):
                return word[0]
        which = f'"{one_line(typed, 40)}" is none of the keys' if typed else "one of the keys is needed"
        typer.echo(f"{which}: a, r, e, s or q", err=True)


def _decided(desk: Desk, item: ReviewItem, answer: str) -> bool:
    """Decide as chosen; gives whether it came to that, as a person may leave at what is asked for it."""
    memory_id, shown = item.version.memory_id, item.shown_sha256
    words = ""
    try:
        if answer == "r":
            words = ask_reason()
        elif answer == "e":
            words = new_wording(None, lambda: item.version.text)
    except typer.Abort:
        return False
    if answer == "a":
        tell(desk, "approved", desk.decide(Approve(memory_id=memory_id, shown=shown)))
    elif answer == "r":
        tell(desk, "rejected", desk.decide(Reject(memory_id=memory_id, shown=shown, reason=words)))
    else:
        edited = desk.decide(Approve(memory_id=memory_id, shown=shown, text=words))
        tell(desk, "approved in other words", edited)
    return True
