"""What a person publishes: begun in the ledger before anything is sent, ended with what became of it.

Nothing here sends. A publication that was begun and never ended counts as unknown, like one that ended so: nobody
knows whether it is public. What is published already is refused for good; what is unknown, until a person has looked
for it and says that it is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from .caller import Caller
from .canonical import check_text
from .engines.base import Snapshot, Transaction
from .entry import Entry
from .errors import Conflict, InvalidInput, NotFound, PermissionDenied
from .ids import PUBLICATION, new_id
from .inputs import identifier, json_value
from .ledger import Draft, event_of
from .lifecycle import ORDER_ACTION
from .limits import PUBLISHED_BYTES, PUBLISHED_CHARS
from .readings import Readings, head_of
from .review_events import PublicationBegun, PublicationEnded
from .rows import EntryFilter

COMMIT_SECONDS: Final = 10.0
SUBJECT: Final = "publication"
ORDERS_LOOKED_AT: Final = 1_000
"""In a text that is to be public, the private reasons of so many of the newest order actions are looked for."""

LEAST_HELD: Final = 12
"""A private reason of fewer characters is found where it is the whole text: "dip" stands in many a text."""

_ALL: Final = 2**62

Outcome = Literal["published", "refused", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is to be published, and where to; of an order action, or of a person's own text."""

    endpoint: str
    body: str
    action_id: str | None = None
    marketplace_listing_id: str | None = None
    community_publication_id: str | None = None
    parent_post_id: str | None = None
    verified_trade_source: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier publication of the same: published, or unknown and not yet looked for."""

    publication_id: str
    outcome: Outcome
    post_id: str | None = None


def check_publication(publication: Publication) -> Publication:
    """The publication with its ids trimmed; raises InvalidInput that names what cannot be published."""
    body = check_text(publication.body, field="body")
    if not body.strip():
        raise InvalidInput("body is blank.", field="body", hint="There is nothing to publish.")
    if len(body) > PUBLISHED_CHARS:
        raise InvalidInput(
            f"body has {len(body):,} characters; at most {PUBLISHED_CHARS:,} are published.",
            field="body",
            hint="Shorten it.",
        )
    size = len(json.dumps(body, ensure_ascii=False).encode()) - 2
    if size > PUBLISHED_BYTES:
        raise InvalidInput(
            f"body has {size:,} bytes of JSON; at most {PUBLISHED_BYTES:,} are published.",
            field="body",
            hint="Shorten it.",
        )
    source = json_value(publication.verified_trade_source, field="verified_trade_source")
    if source is not None and not isinstance(source, dict):
        raise InvalidInput(
            "verified_trade_source must be a JSON object.",
            field="verified_trade_source",
            hint="Give it as the community names it.",
        )
    return Publication(
        endpoint=publication.endpoint,
        body=body,
        verified_trade_source=source,
        **{name: _id(getattr(publication, name), name) for name in _IDS},
    )


_IDS: Final = ("action_id", "marketplace_listing_id", "community_publication_id", "parent_post_id")


def _id(value: str | None, field: str) -> str | None:
    return None if value is None else identifier(value, field=field)


class Publications(Readings):
    """The publishing side of an open ledger."""

    def public_reason(self, action_id: str) -> str:
        """The public reason of an order action, never the private one.

        Raises Conflict in a run, NotFound for an id that names no order action of this ledger or one without a
        public reason, InvalidInput where the public reason is the private one.
        """
        self._refuse_run()
        with self._engine.read() as snapshot:
            return _public_reason(snapshot, head_of(snapshot).sequence, action_id)

    def private_reason_in(self, body: str) -> str | None:
        """The newest order action whose private reason a text is, or holds whole, white space and capitals aside.

        Only the last 1,000 order actions are looked at.
        """
        text = _plain(body)
        orders = EntryFilter(event_type="order_action.recorded", newest_first=True, limit=ORDERS_LOOKED_AT)
        with self._engine.read() as snapshot:
            for entry in snapshot.entries(orders):
                reason = _plain(json.loads(entry.content).get("text", ""))
                if reason and (reason == text or (len(reason) >= LEAST_HELD and reason in text)):
                    return entry.subject_id
        return None

    def unknown_before(self, publication: Publication, *, reconciled: bool) -> str | None:
        """The id of the earlier try that is unknown and that a person looked for; None without one.

        Raises what `begin_publication` will raise because of earlier ones, InvalidInput where there is none to have
        looked for.
        """
        with self._engine.read() as snapshot:
            earlier = _earlier(snapshot, publication)
        if reconciled and earlier is None:
            raise InvalidInput(
                "No earlier try of it is unknown, so there is nothing to have looked for.",
                field="--reconciled",
                hint="Leave --reconciled away.",
            )
        looked_for = earlier.publication_id if reconciled and earlier is not None else None
        _refuse_again(earlier, looked_for)
        return looked_for

    def begin_publication(
        self, caller: Caller, publication: Publication, *, reconciled: str | None = None
    ) -> str:
        """Write that something is going to be sent, durably, and give the publication's id.

        `reconciled` is the id of the unknown publication that a person looked for and did not find. Raises
        PermissionDenied for anybody but a reviewer, Conflict where it is published already, or unknown and not
        `reconciled`; then nothing may be sent.
        """
        self._refuse_run()
        _refuse_others(caller)
        checked = check_publication(publication)

        def job(transaction: Transaction) -> str:
            if checked.action_id is not None:
                told = _public_reason(transaction, head_of(transaction).sequence, checked.action_id)
                if told != checked.body:
                    raise Conflict(
                        "The body is not the public reason of the order action.",
                        field="body",
                        hint="Start the command again; it reads the public reason anew.",
                    )
            _refuse_again(_earlier(transaction, checked), reconciled)
            name = new_id(PUBLICATION)
            event = PublicationBegun(
                endpoint=checked.endpoint,
                body=checked.body,
                verified_trade_source=checked.verified_trade_source,
                reconciled=reconciled,
                **{field: getattr(checked, field) for field in _IDS},
            )
            self._ledger.append(transaction, caller, [Draft(event, SUBJECT, name)])
            return name

        return self._engine.write(job, timeout=COMMIT_SECONDS)

    def end_publication(self, caller: Caller, publication_id: str, ended: PublicationEnded) -> None:
        """Write what became of a publication, durably; raises Conflict when that is written already."""
        _refuse_others(caller)

        def job(transaction: Transaction) -> None:
            entries = transaction.history(publication_id, head_of(transaction).sequence)
            if [entry.event_type for entry in entries] != ["publication.begun"]:
                raise Conflict(
                    f"{publication_id} is no publication that is under way.",
                    field="publication_id",
                    hint="`deskbook log --event publication.ended` lists how publications ended.",
                )
            self._ledger.append(transaction, caller, [Draft(ended, SUBJECT, publication_id)])

        self._engine.write(job, timeout=COMMIT_SECONDS)

    def _refuse_run(self) -> None:
        if self._ledger.run is not None:
            raise Conflict(
                "Nothing is published from a run: what happened in it never happened.",
                field="--run",
                hint="Publish from the live ledger of the strategy.",
            )


def _refuse_others(caller: Caller) -> None:
    if not caller.reviewer:
        raise PermissionDenied(
            "Only a person who proved to be a reviewer publishes.",
            hint="`deskbook publish` asks for the proof.",
        )


def _public_reason(snapshot: Snapshot, cut: int, action_id: str) -> str:
    action = snapshot.version(identifier(action_id, field="action_id"), cut)
    if action is None or action.kind != ORDER_ACTION:
        raise NotFound(
            "action_id names no order action of this ledger.",
            field="action_id",
            hint="`deskbook log --event order_action.recorded` lists them.",
        )
    told = action.details.get("public_reason")
    if told is None:
        raise NotFound(
            f"{action.memory_id} has no public reason, and its private one is never published.",
            field="action_id",
            hint="Write what may be public into a file and publish that: --body FILE.",
        )
    if _plain(str(told)) == _plain(action.text):
        raise InvalidInput(
            f"The public reason of {action.memory_id} is its private one, which is never published.",
            field="action_id",
            hint="Write a public_reason of its own next time; what may be public of this one goes into a file: "
            "--body FILE.",
        )
    return str(told)


def _plain(text: str) -> str:
    """The words of a text, whatever stands between them and whichever of their letters are capitals."""
    return " ".join(text.casefold().split())


def _refuse_again(earlier: Earlier | None, reconciled: str | None) -> None:
    if earlier is not None and earlier.outcome == "published":
        raise Conflict(
            f"It is published already, as post {earlier.post_id} ({earlier.publication_id}).",
            hint="Nothing is published twice. What is to be added can be a reply: --parent-post-id with --body.",
        )
    if earlier is not None and earlier.publication_id != reconciled:
        raise Conflict(
            f"An earlier try is unknown ({earlier.publication_id}): it may be public, or still be under way.",
            hint="Look whether it is there. Only if it is not, give --reconciled.",
        )
    if earlier is None and reconciled is not None:
        raise Conflict(
            f"{reconciled} no longer stands in the way.",
            field="--reconciled",
            hint="Leave --reconciled away.",
        )


def _earlier(snapshot: Snapshot, publication: Publication) -> Earlier | None:
    """What stands in the way: what is published before what is unknown, and of that the latest."""
    found: dict[str, Earlier] = {}
    for entry, begun in _begun(snapshot, publication):
        if begun.reconciled is not None:
            found.pop(begun.reconciled, None)
        earlier = _ended(snapshot, entry.subject_id)
        if earlier.outcome == "published":
            return earlier
        if earlier.outcome == "unknown":
            found[entry.subject_id] = earlier
    return list(found.values())[-1] if found else None


def _begun(snapshot: Snapshot, publication: Publication) -> Iterator[tuple[Entry, PublicationBegun]]:
    """The publications of the same so far, oldest first."""
    for entry in snapshot.entries(EntryFilter(event_type="publication.begun", limit=_ALL)):
        begun = event_of(entry)
        if isinstance(begun, PublicationBegun) and _same(begun, publication):
            yield entry, begun


def _same(begun: PublicationBegun, publication: Publication) -> bool:
    """Whether both are of one action; without two actions to tell apart, of one text in reply to one post."""
    if begun.action_id is not None and publication.action_id is not None:
        return begun.action_id == publication.action_id
    return (begun.body, begun.parent_post_id) == (publication.body, publication.parent_post_id)


def _ended(snapshot: Snapshot, publication_id: str) -> Earlier:
    for entry in snapshot.history(publication_id, head_of(snapshot).sequence):
        if entry.event_type == "publication.ended":
            ended = json.loads(entry.content)
            return Earlier(publication_id, ended["outcome"], ended.get("post_id"))
    return Earlier(publication_id, "unknown")
