"""The decisions of `deskbook review`, each bound to the wording that the person was shown."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from store.clock import format_instant
from store.errors import ConfigError, InvalidInput
from store.lifecycle import ENDED
from store.review.items import FlagItem
from store.review_commands import RESOLUTIONS, Approve, Reject, Renew, Retire, Revise, Settle, SignOff
from store.rows import Version

from ..near_miss import did_you_mean
from .deciding import (
    AsOption,
    Desk,
    FileOption,
    HashOption,
    IdArgument,
    NoteOption,
    NowOption,
    TagsOption,
    TextOption,
    ask_reason,
    at_desk,
    new_wording,
    read_text,
    show_flag,
    shown_wording,
    tag_words,
    tell,
)
from .place import ConfigOption, RootOption, RunOption, StrategyOption, find_place
from .screen import one_line, plain, say
from .wording import counted

EVERY: Final = 10_000


def approve(
    memory_id: IdArgument,
    shown: HashOption = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """Let a waiting memory into recall, in the words that were shown."""
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "Approve it?")
        tell(desk, "approved", desk.decide(Approve(memory_id=memory_id, shown=wording, note=note)))
        tell_waiting(desk)


def reject(
    memory_id: IdArgument,
    shown: HashOption = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept with the decision.")] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    now: NowOption = None,
) -> None:
    """Keep a waiting memory out of recall for good, with a reason."""
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "Reject it?")
        why = _reason(reason)
        tell(desk, "rejected", desk.decide(Reject(memory_id=memory_id, shown=wording, reason=why)))
        tell_waiting(desk)


def edit(
    memory_id: IdArgument,
    shown: HashOption = None,
    text: TextOption = None,
    file: FileOption = None,
    tags: TagsOption = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """Approve a waiting memory in other words; who wrote them stands in the ledger."""
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "Put it into other words and approve those?")
        new = new_wording(read_text(text, file), lambda: desk.book.review_item(memory_id).version.text)
        command = Approve(
            memory_id=memory_id, shown=wording, text=new, tags=tag_words(tags) or None, note=note
        )
        tell(desk, "approved in other words", desk.decide(command))
        tell_waiting(desk)


def revise(
    memory_id: IdArgument,
    shown: HashOption = None,
    text: TextOption = None,
    file: FileOption = None,
    tags: TagsOption = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """Put a memory that is in use into other words; the old ones stay in its history."""
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "Put it into other words?")
        new = new_wording(read_text(text, file), lambda: desk.book.review_item(memory_id).version.text)
        command = Revise(
            memory_id=memory_id, shown=wording, text=new, tags=tag_words(tags) or None, note=note
        )
        tell(desk, "revised", desk.decide(command))


def sign_off(
    memory_id: IdArgument,
    shown: HashOption = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """Vouch for a lesson, which validates it without outcomes."""
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "Vouch for this lesson?")
        tell(desk, "signed off", desk.decide(SignOff(memory_id=memory_id, shown=wording, note=note)))


def renew(
    memory_id: IdArgument,
    shown: HashOption = None,
    review_by: Annotated[
        str | None, typer.Option("--review-by", help="The next review: ISO time or date; else by the config.")
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", help="When it ends: ISO time or date.")
    ] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """Say that a memory still holds, until its next review."""
    place = find_place(config, root, strategy, run)
    dates = {
        "review_by": place.instant(review_by, "--review-by"),
        "expires_at": place.instant(expires_at, "--expires-at"),
    }
    with at_desk(place, as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "Does it still hold?")
        command = Renew(memory_id=memory_id, shown=wording, note=note, **dates)
        tell(desk, "renewed", desk.decide(command))
        _tell_until(desk, memory_id)


def retire(
    memory_id: IdArgument,
    shown: HashOption = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """End a memory of anybody: retired, withdrawn, resolved or, a thesis, closed without an outcome."""
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        wording = shown_wording(desk, memory_id, shown, "End it?")
        tell(desk, "ended", desk.decide(Retire(memory_id=memory_id, shown=wording, note=note)))


def settle(
    flag_id: Annotated[str, typer.Argument(metavar="FLAG", help="The event id of the flag.")],
    resolution: Annotated[
        str,
        typer.Argument(
            metavar="ANSWER", help=", ".join(word.replace("_", "-") for word in RESOLUTIONS) + "."
        ),
    ],
    scope: Annotated[
        str | None, typer.Option("--scope", help="With both-hold: what each side is true of.")
    ] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    note: NoteOption = None,
    now: NowOption = None,
) -> None:
    """Answer a flag: which side of a conflict holds, or whether an objection is upheld."""
    answer = next((word for word in RESOLUTIONS if word == resolution.replace("-", "_")), None)
    if answer is None:
        known = [word.replace("_", "-") for word in RESOLUTIONS]
        raise InvalidInput(
            f'"{plain(resolution[:40])}" is no answer{did_you_mean(resolution, known)}.',
            field="ANSWER",
            hint=f"One of {', '.join(known)}.",
        )
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        _, flags = desk.book.open_flags(limit=EVERY)
        found = next((each for each in flags if each.event_id == flag_id), None)
        if found is not None and sys.stdin.isatty():
            show_flag(desk, found)
        command = Settle(flag_id=flag_id, resolution=answer, scope=scope, note=note)  # type: ignore[arg-type]
        tell(desk, f"settled ({resolution})", desk.decide(command))
        if found is not None:
            _tell_sides(desk, found)


def _reason(given: str | None) -> str:
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise ConfigError("A rejection says why: --reason TEXT.", field="--reason")
    return ask_reason()


def _tell_until(desk: Desk, memory_id: str) -> None:
    """Say until when a renewed memory holds, as the ledger has it now."""
    version, zone = desk.book.review_item(memory_id).version, desk.place.zone
    if version.stale_at is not None:
        say(f"  holds until {format_instant(version.stale_at, zone)}, when it is due for review again")
    if version.expires_at is not None:
        say(f"  expires at {format_instant(version.expires_at, zone)}")


def _tell_sides(desk: Desk, settled: FlagItem) -> None:
    """Say of each memory that a flag was about whether it stands, as the ledger has it now."""
    told = []
    for item in (settled.memory, settled.other):
        if item is not None:
            version = desk.book.review_item(item.version.memory_id).version
            told.append(f"{one_line(version.memory_id)} {_standing(version)}")
    say(f"  {'; '.join(told)}")


def _standing(version: Version) -> str:
    if version.status in (*ENDED, "closed"):
        return f"ended ({version.status})"
    if version.review_state == "rejected":
        return "was rejected"
    return "waits for a person" if version.review_state == "pending" else "stands"


def tell_waiting(desk: Desk) -> None:
    """Say how many memories wait still."""
    total, _ = desk.book.review_queue(limit=1)
    if total:
        desk.next_step(f"{counted(total, 'memory waits', 'memories wait')} still: `deskbook review`")
