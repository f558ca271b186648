"""What people decide about memories, what they take away and what they publish, as contents of entries.

`shown_sha256` is the content_sha256, in hex, of the entry whose wording the person was shown: a decision holds for
that wording alone.
"""

from __future__ import annotations

from typing import Any, Literal

from .event_parts import Covered, Event, Strings

Resolution = Literal["newer_wins", "older_wins", "both_hold", "not_a_conflict", "upheld", "dismissed"]


class Repeated(Event):
    """An agent said word for word what stands already; `count` says how often it has."""

    type: Literal["memory.repeated"] = "memory.repeated"
    count: int
    notices: Strings


class Approved(Event):
    """A person let a waiting memory into recall."""

    type: Literal["review.approved"] = "review.approved"
    shown_sha256: str
    note: str | None = None


class Rejected(Event):
    """A person kept a waiting memory out of recall, for good."""

    type: Literal["review.rejected"] = "review.rejected"
    shown_sha256: str
    reason: str


class Edited(Event):
    """A person put a memory into other words; tags left out stay."""

    type: Literal["review.edited"] = "review.edited"
    shown_sha256: str
    text: str
    tags: Strings | None = None
    tags_given: Strings | None = None
    settles: tuple[int, ...] | None = None
    note: str | None = None
    masked: Strings | None = None
    suspicious: Strings | None = None
    redacted: int | None = None


class SignedOff(Event):
    """A person vouches for a lesson, which validates it without outcomes."""

    type: Literal["review.signed_off"] = "review.signed_off"
    shown_sha256: str
    previous: str
    note: str | None = None


class Renewed(Event):
    """A person looked at a memory and found that it holds, until the next review; `settles` names flags by entry."""

    type: Literal["review.renewed"] = "review.renewed"
    shown_sha256: str
    review_by: int | None = None
    expires_at: int | None = None
    settles: tuple[int, ...] | None = None
    note: str | None = None


class Settled(Event):
    """A flag was answered, by a person or by the configured policy; `flag` is the entry that raised it.

    For a conflict, `contradicts` is the other memory and `supersedes` the one that lost; `also` are the entries of
    other flags that say the same of the two.
    """

    type: Literal["review.settled"] = "review.settled"
    flag: int
    also: tuple[int, ...] | None = None
    resolution: Resolution
    supersedes: str | None = None
    contradicts: str | None = None
    scope: str | None = None
    policy: Literal["newest", "newest_validated"] | None = None
    note: str | None = None


class Redacted(Event):
    """Content was taken away for good; chain and counts stay. `covered` says of which entries.

    `again` stands where a backup from before was restored, with who took it away first in `by`.
    """

    type: Literal["memory.redacted"] = "memory.redacted"
    reason: str
    covered: tuple[Covered, ...]
    again: Literal[True] | None = None
    by: str | None = None


class PublicationBegun(Event):
    """A person sends something to the public; written before it is sent, and whole, since it is public then.

    `endpoint` is without its query. `reconciled` names the earlier publication that was unknown and that the person
    looked for and did not find.
    """

    type: Literal["publication.begun"] = "publication.begun"
    endpoint: str
    body: str
    action_id: str | None = None
    marketplace_listing_id: str | None = None
    community_publication_id: str | None = None
    parent_post_id: str | None = None
    verified_trade_source: dict[str, Any] | None = None
    reconciled: str | None = None


class PublicationEnded(Event):
    """What became of it; without this entry, and with `unknown`, nobody knows whether it is public."""

    type: Literal["publication.ended"] = "publication.ended"
    outcome: Literal["published", "refused", "unknown"]
    post_id: str | None = None
    http_status: int | None = None
    error_type: str | None = None
