"""publish: make one text public, after showing what is sent; in the ledger before and after, and never retried."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from store.canonical import parse_json_text
from store.errors import ConfigError, DeskbookError, InvalidInput
from store.limits import PUBLISHED_BYTES

from ..typed import hints_with_place
from .place import ConfigOption, Place, RootOption, RunOption, StrategyOption, find_place
from .questions import agree, leaving
from .screen import one_line, plain, say
from .spelling import as_typed

UNSENT: Final = "Nothing was sent."
TYPED: Final = {
    "action_id": "ACTION_ID",
    "body": "--body",
    "community_publication_id": "--publication-id",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in ("marketplace_listing_id", "publication_id", "verified_trade_source", "parent_post_id")
    },
}
"""How a person types what is published."""

if TYPE_CHECKING:
    from store import Book, Caller
    from store.review_events import PublicationEnded

    from ..publishing.request import Request


def publish(
    action_id: Annotated[
        str | None,
        typer.Argument(metavar="ACTION_ID", help="The order action whose public reason is meant."),
    ] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    body: Annotated[
        Path | None, typer.Option("--body", help="Instead of an action: a file of UTF-8 text, sent as it is.")
    ] = None,
    name: Annotated[str | None, typer.Option("--as", help="The reviewer who publishes.")] = None,
    marketplace_listing_id: Annotated[
        str | None, typer.Option(help="The listing it belongs to, as the community names it.")
    ] = None,
    publication_id: Annotated[
        str | None, typer.Option(help="The publication it belongs to, as the community names it.")
    ] = None,
    verified_trade_source: Annotated[
        str | None, typer.Option(help="Where a verified trade comes from: a JSON object for the community.")
    ] = None,
    parent_post_id: Annotated[str | None, typer.Option(help="The post that it replies to.")] = None,
    reconciled: Annotated[
        bool,
        typer.Option("--reconciled", help="You looked for an earlier try that is unknown: it is not there."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    despite_warnings: Annotated[
        bool,
        typer.Option("--despite-warnings", help="With --yes: also when the text seems unsafe to publish."),
    ] = False,
) -> None:
    """Post a text to the address of [publish], with its key, once: an action's public reason, or a file.

    It shows exactly what is sent, asks, and wants a reviewer's proof. Without an answer it stays unknown.
    """
    place = find_place(config, root, strategy, run)
    wish = _Wish(place, name, reconciled=reconciled, yes=yes, despite_warnings=despite_warnings)
    with hints_with_place(place.settings), as_typed(TYPED):
        _check_usage(place, action_id, body)
        source = _source(verified_trade_source)
        with closing(place.open()) as book:
            text = _read_body(body) if body is not None else book.public_reason(action_id or "")
            published = _publish(
                book,
                wish,
                body=text,
                action_id=action_id,
                marketplace_listing_id=marketplace_listing_id,
                community_publication_id=publication_id,
                parent_post_id=parent_post_id,
                verified_trade_source=source,
            )
    if not published:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the person said beside the text."""

    place: Place
    name: str | None
    reconciled: bool
    yes: bool
    despite_warnings: bool


def _publish(book: Book, wish: _Wish, **what: Any) -> bool:
    """Show, ask, begin, send, end; whether it is published now."""
    from store.publications import Publication, check_publication

    from ..publishing.request import build_request
    from ..publishing.sending import Sender
    from ..publishing.target import find_target
    from ..reviewers import check_named, reviewer_caller

    settings = wish.place.settings
    check_named(settings, wish.name, os.environ)
    target = find_target(settings, os.environ)
    publication = check_publication(Publication(endpoint=target.recorded, **what))
    request = build_request(target, publication)
    looked_for = book.unknown_before(publication, reconciled=wish.reconciled)
    with closing(Sender(tls=target.url.startswith("https:"), seconds=target.seconds)) as sender:
        _ask(wish, request, _findings(book, publication.body))
        with leaving(UNSENT):
            caller = reviewer_caller(settings, wish.name, os.environ, tool="publish")
        name = book.begin_publication(caller, publication, reconciled=looked_for)
        ended = sender.send(request)
        fault = _record(book, caller, name, ended)
    _tell(name, ended)
    if fault is not None:
        typer.echo(f"deskbook: In the ledger {name} stays unknown: {plain(fault.message)}", err=True)
    return ended.outcome == "published" and fault is None


def _record(book: Book, caller: Caller, name: str, ended: PublicationEnded) -> DeskbookError | None:
    """Write what became of it; gives what kept it from being written, as the person must hear of both."""
    try:
        book.end_publication(caller, name, ended)
    except DeskbookError as fault:
        return fault
    return None


def _check_usage(place: Place, action_id: str | None, body: Path | None) -> None:
    if (action_id is None) == (body is None):
        raise ConfigError(
            "publish takes the id of an order action, or --body FILE.",
            field="ACTION_ID",
            hint="`deskbook log --event order_action.recorded` lists the order actions.",
        )
    if place.run is not None:
        raise ConfigError(
            "Nothing is published from a run: what happened in it never happened.",
            field="--run",
            hint="Publish from the live ledger of the strategy, with a config whose clock is live.",
        )


def _read_body(path: Path) -> str:
    """The file as it is, with no byte changed."""
    try:
        with path.open("rb") as file:
            raw = file.read(PUBLISHED_BYTES + 1)
        if len(raw) > PUBLISHED_BYTES:
            raise InvalidInput(
                f"The file has more than {PUBLISHED_BYTES:,} bytes, the most that are published.",
                field="--body",
                hint="Shorten it.",
            )
        return raw.decode("utf-8")
    except OSError as fault:
        raise ConfigError(
            f"The file cannot be read: {os.strerror(fault.errno or 0)}.",
            field="--body",
            hint="Name a file of UTF-8 text.",
            where=path,
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput("The file is not UTF-8 text.", field="--body", hint="Save it as UTF-8.") from None


def _source(text: str | None) -> Any:
    return (
        None
        if text is None
        else parse_json_text(text, field="--verified-trade-source", example='{"id": "..."}')
    )


def _findings(book: Book, body: str) -> tuple[str, ...]:
    """What the body seems to hold that should not be public, each once."""
    from store.public_reason import findings
    from store.screening.secrets import find_secrets

    found = [*findings(body), *(secret.what for secret in find_secrets(body))]
    if action_id := book.private_reason_in(body):
        found.append(f"the private reason of {one_line(action_id)}")
    return tuple(dict.fromkeys(found))


def _ask(wish: _Wish, request: Request, found: tuple[str, ...]) -> None:
    """Show every byte that will be sent, and what seems wrong with it; go on only with a yes."""
    for line in request.shown():
        say(plain(line))
    say()
    for what in found:
        typer.echo(f"warning: the body seems to hold {what}", err=True)
    if not wish.yes:
        with leaving(UNSENT):
            agree("Publish this?")
    elif found and not wish.despite_warnings:
        raise InvalidInput(
            f"The body seems to hold {', '.join(found)}, and nobody was asked. Nothing was sent.",
            field="--yes",
            hint="Take it out, leave --yes away to be asked, or give --despite-warnings.",
        )


def _tell(name: str, ended: PublicationEnded) -> None:
    from ..publishing.sending import told

    if ended.outcome == "published":
        say(f"published as post {one_line(ended.post_id or '')} ({name})")
    elif ended.outcome == "refused":
        say(f"refused: {told(ended)}; nothing is public ({name})")
        say("mend what is wrong and give the command again")
    else:
        say(f"unknown: {told(ended)}; it may be public ({name})")
        say("look whether it is there; only if it is not, give the command again with --reconciled")
