"""review: what waits for a person, what is due and what conflicts; and the decisions on it."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Final

import typer

from store.clock import format_age
from store.errors import ConfigError
from store.lifecycle import ENDED, THESIS
from store.review.items import FlagItem, ReviewItem

from . import decisions
from .deciding import AsOption, Desk, IdArgument, NowOption, at_desk, show_flag
from .items import flag_record, item_line, item_record, short_hash
from .place import ConfigOption, JsonOption, RootOption, RunOption, StrategyOption, find_place
from .screen import one_line, say
from .stepping import step_through
from .wording import counted

LIMIT: Final = 50
review = typer.Typer(
    name="review",
    help="Decide what waits for a person; alone, in a terminal, it steps through it.",
    invoke_without_command=True,
)

LimitOption = Annotated[int, typer.Option(min=1, help="At most so many.")]


for command in (
    decisions.approve,
    decisions.reject,
    decisions.edit,
    decisions.revise,
    decisions.renew,
    decisions.retire,
    decisions.settle,
):
    review.command()(command)
review.command("sign-off")(decisions.sign_off)


@review.callback()
def step(
    context: typer.Context,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    now: NowOption = None,
) -> None:
    """Decide what waits for a person; alone, in a terminal, it steps through it."""
    if context.invoked_subcommand is not None:
        if any(given is not None for given in (config, root, strategy, run, as_name, now)):
            raise ConfigError(
                f"Options go behind the command: deskbook review {context.invoked_subcommand} ...",
                field="review",
            )
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            "Stepping through what waits needs a terminal.",
            field="review",
            hint="`deskbook review list` prints it, `deskbook review approve ID --hash HASH` decides.",
        )
    with at_desk(find_place(config, root, strategy, run), as_name, now) as desk:
        step_through(desk)
        _tell_others(desk)


@review.command("list")
def list_all(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    agent: Annotated[str | None, typer.Option(help="Only what this agent wrote.")] = None,
    limit: LimitOption = LIMIT,
    as_json: JsonOption = False,
) -> None:
    """List what waits for a person, the oldest first, each with the hash of its wording."""
    with at_desk(find_place(config, root, strategy, run)) as desk:
        total, found = desk.book.review_queue(agent=agent, limit=limit)
        if as_json:
            say(json.dumps({"total": total, "waiting": [item_record(item) for item in found]}))
            return
        for item in found:
            say(item_line(item))
        say(f"{counted(total, 'memory waits', 'memories wait')}" + _of(len(found), total))
        if found:
            first = found[0].version.memory_id
            desk.next_step(
                f"`deskbook review show {first}` shows it whole, `deskbook review` steps through all."
            )
        _tell_others(desk)


@review.command()
def show(
    memory_id: IdArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a memory whole: author, age, text, what it resembles, and the hash that a decision names."""
    with at_desk(find_place(config, root, strategy, run)) as desk:
        item = desk.book.review_item(memory_id)
        if as_json:
            say(json.dumps(item_record(item)))
            return
        desk.show(item)
        if next_step := _how_to_decide(item):
            desk.next_step(next_step)


@review.command()
def due(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    now: Annotated[
        str | None, typer.Option("--now", help="What will be due then: ISO time with offset, or a date.")
    ] = None,
    limit: LimitOption = LIMIT,
    as_json: JsonOption = False,
) -> None:
    """List the lessons and open theses past their review, and what to do about each."""
    place = find_place(config, root, strategy, run)
    at = place.instant(now, "--now")
    with at_desk(place) as desk:
        total, found = desk.book.reviews_due(at, limit=limit)
        if as_json:
            say(json.dumps({"total": total, "due": [item_record(item) for item in found]}))
            return
        for item in found:
            say(f"{item_line(item)}{_overdue(item)}")
            desk.next_step(f"    {_how_to_answer(item)}")
        say(counted(total, "memory is due", "memories are due") + _of(len(found), total))


@review.command()
def conflicts(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every flag that nobody answered, not only conflicts.")
    ] = False,
    limit: LimitOption = LIMIT,
    as_json: JsonOption = False,
) -> None:
    """List the conflicts that nobody has settled, both sides quoted."""
    with at_desk(find_place(config, root, strategy, run)) as desk:
        reason = None if every else "conflicting"
        total, found = desk.book.open_flags(reason=reason, limit=limit)
        if as_json:
            say(json.dumps({"total": total, "flags": [flag_record(each) for each in found]}))
            return
        for each in found:
            show_flag(desk, each)
            desk.next_step(_how_to_settle(each))
        say(counted(total, "flag is open", "flags are open") + _of(len(found), total))


def _how_to_settle(found: FlagItem) -> str:
    first, others = ("upheld", "dismissed")
    if found.flag.reason == "conflicting":
        first, others = ("newer-wins", "older-wins, both-hold or not-a-conflict")
    return f"    `deskbook review settle {found.event_id} {first}` (or {others})"


def _of(shown: int, total: int) -> str:
    return f"; {shown} shown, --limit shows more" if shown < total else ""


def _overdue(item: ReviewItem) -> str:
    at = item.version.stale_at
    return "" if at is None else f"  due {format_age(item.at - at)} ago"


def _how_to_decide(item: ReviewItem) -> str | None:
    """The commands that are left for a memory; None for one that has ended."""
    version, digits = item.version, short_hash(item)
    if version.review_state == "rejected" or version.status in (*ENDED, "closed"):
        return None
    name = one_line(version.memory_id)
    if version.review_state == "pending":
        return f"`deskbook review approve {name} --hash {digits}`, or reject or edit in its place, decides."
    return f"`deskbook review renew {name} --hash {digits}`, or revise or retire in its place, answers."


def _how_to_answer(item: ReviewItem) -> str:
    name, digits = one_line(item.version.memory_id), short_hash(item)
    ends = "retire closes it without an outcome" if item.version.kind == THESIS else "retire ends it"
    return f"`deskbook review renew {name} --hash {digits}` if it holds; revise changes its words, {ends}"


def _tell_others(desk: Desk) -> None:
    """Point to what else a person should look at."""
    overdue, _ = desk.book.reviews_due(limit=1)
    flagged, _ = desk.book.open_flags(limit=1)
    if overdue:
        desk.next_step(
            f"{counted(overdue, 'memory is due', 'memories are due')} for review: `deskbook review due`"
        )
    if flagged:
        desk.next_step(
            f"{counted(flagged, 'flag is open', 'flags are open')}: `deskbook review conflicts --all`"
        )
