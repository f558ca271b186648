"""What the ledger lets be published: by whom, of what, how often; decided where it is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.permissions import PROFILES, TOOL_ACTIONS, Action
from server.publishing.request import build_request
from server.publishing.target import Target
from server.tools import TOOLS
from store import Book, Caller
from store.commands import IntendOrder
from store.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from store.publications import Publication, check_publication
from store.review_events import PublicationEnded

if TYPE_CHECKING:
    from conftest import CountWork, Seat

TEXT = Publication(endpoint="https://community.example/posts", body="A text.")
PUBLISHED = PublicationEnded(outcome="published", post_id="post-1")
REFUSED = PublicationEnded(outcome="refused")
UNKNOWN = PublicationEnded(outcome="unknown")
PERSON = Caller("pat", "reviewer", "ses-pat", "publish", reviewer=True)


def try_once(book: Book, end: PublicationEnded | None, what: Publication = TEXT, **more: Any) -> str:
    """One publication that ends so, or never."""
    name = book.begin_publication(PERSON, what, **more)
    if end is not None:
        book.end_publication(PERSON, name, end)
    return name


def intend(seat: Seat, **terms: Any) -> str:
    reason = "Half a position on the breakout, out below 181.20. " * 5
    given = {"symbol": "AAPL", "side": "buy", "quantity": "10", "reason": reason, **terms}
    return seat.do(IntendOrder(operation="submit", **given)).id


@pytest.mark.parametrize("profile", PROFILES)
def test_no_agent_publishes_whatever_its_profile(seat: Seat, profile: str) -> None:
    agent = replace(PERSON, agent="ann", profile=profile, reviewer=False, observer=True, resolves_any=True)
    with pytest.raises(PermissionDenied):
        seat.book.begin_publication(agent, TEXT)
    name = try_once(seat.book, None)
    with pytest.raises(PermissionDenied):
        seat.book.end_publication(agent, name, PUBLISHED)


def test_no_tool_publishes() -> None:
    assert Action.PUBLISH not in TOOL_ACTIONS.values()
    assert not [name for name in TOOLS if "publi" in name]


def test_nothing_is_published_from_a_run(open_seat: Callable[..., Seat]) -> None:
    book = open_seat(run="r").book
    with pytest.raises(Conflict, match="from a run"):
        book.begin_publication(PERSON, TEXT)
    with pytest.raises(Conflict, match="from a run"):
        book.public_reason("act_0000000000000")


@pytest.mark.parametrize(
    ("ends", "may"),
    [
        ([], True),
        ([REFUSED], True),
        ([REFUSED, REFUSED], True),
        ([UNKNOWN], False),
        ([None], False),
        ([REFUSED, UNKNOWN], False),
        ([PUBLISHED], False),
        ([REFUSED, PUBLISHED], False),
    ],
)
def test_what_may_follow(seat: Seat, ends: list[PublicationEnded | None], may: bool) -> None:
    for end in ends:
        try_once(seat.book, end)
    if may:
        try_once(seat.book, PUBLISHED)
        return
    with pytest.raises(Conflict):
        try_once(seat.book, PUBLISHED)


def test_only_the_unknown_one_that_was_looked_for_is_out_of_the_way(seat: Seat) -> None:
    first = try_once(seat.book, UNKNOWN)
    with pytest.raises(Conflict):
        try_once(seat.book, UNKNOWN, reconciled="pub_0000000000000")
    second = try_once(seat.book, None, reconciled=first)
    with pytest.raises(Conflict, match=second):
        try_once(seat.book, UNKNOWN, reconciled=first)
    try_once(seat.book, REFUSED, reconciled=second)
    with pytest.raises(Conflict, match="no longer stands"):
        try_once(seat.book, UNKNOWN, reconciled=second)
    try_once(seat.book, PUBLISHED)


def test_a_publication_ends_once_and_only_one_that_was_begun(seat: Seat) -> None:
    name = try_once(seat.book, UNKNOWN)
    for other in (name, "pub_0000000000000", "ses-pat"):
        with pytest.raises(Conflict):
            seat.book.end_publication(PERSON, other, PUBLISHED)
    assert len(seat.entries("publication.ended")) == 1


def test_one_action_is_published_once_and_two_with_the_same_words_are_two(seat: Seat) -> None:
    first, other = (intend(seat, public_reason="Trimmed on strength.") for _ in range(2))
    of_first = replace(TEXT, action_id=first, body="Trimmed on strength.")
    try_once(seat.book, PUBLISHED, of_first)
    for again in (
        of_first,
        replace(of_first, parent_post_id="p"),
        replace(of_first, endpoint="https://other.example"),
        replace(of_first, action_id=None),
    ):
        with pytest.raises(Conflict, match="published already"):
            try_once(seat.book, PUBLISHED, again)
    try_once(seat.book, PUBLISHED, replace(of_first, action_id=other))


def test_the_same_words_in_reply_to_another_post_are_another_publication(seat: Seat) -> None:
    for parent in (None, "post-1", "post-2"):
        try_once(seat.book, PUBLISHED, replace(TEXT, parent_post_id=parent))
    with pytest.raises(Conflict):
        try_once(seat.book, PUBLISHED, replace(TEXT, parent_post_id="post-2"))


def test_of_an_action_nothing_but_its_public_reason_is_begun(seat: Seat) -> None:
    told, untold = intend(seat, public_reason="Trimmed."), intend(seat)
    assert seat.book.public_reason(told) == "Trimmed."
    with pytest.raises(Conflict, match="not the public reason"):
        try_once(seat.book, None, replace(TEXT, action_id=told, body="Something else."))
    for other in (untold, "act_0000000000000", "mem_0000000000000"):
        with pytest.raises(NotFound):
            try_once(seat.book, None, replace(TEXT, action_id=other))
        with pytest.raises(NotFound):
            seat.book.public_reason(other)
    assert seat.entries("publication.begun") == []


@pytest.mark.parametrize("unknown", [False, True])
def test_of_many_at_once_one_begins(open_seat: Callable[..., Seat], unknown: bool) -> None:
    books = [open_seat().book for _ in range(3)]
    looked_for = try_once(books[0], UNKNOWN) if unknown else None
    ready = threading.Barrier(12)

    def begin(number: int) -> str | None:
        ready.wait()
        try:
            return books[number % 3].begin_publication(PERSON, TEXT, reconciled=looked_for)
        except Conflict:
            return None

    with ThreadPoolExecutor(12) as pool:
        begun = [name for name in pool.map(begin, range(12)) if name is not None]
    assert len(begun) == 1


def test_what_stands_in_the_way_is_found_without_a_look_at_other_entries(
    seat: Seat, open_seat: Callable[..., Seat], counted: CountWork
) -> None:
    try_once(seat.book, REFUSED)

    def looked() -> int:
        with counted() as work:
            book = open_seat().book
            opened = work.steps
            book.unknown_before(TEXT, reconciled=False)
        return work.steps - opened

    before = looked()
    for _ in range(200):
        intend(seat)
    assert 0 < looked() < before + 100


IDS = st.one_of(
    st.none(), st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40)
)


@given(
    body=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip),
    parent=IDS,
    source=st.one_of(
        st.none(), st.dictionaries(st.text("abc", max_size=3), st.integers(-9, 9) | st.text("xyz\n"))
    ),
)
def test_what_is_sent_says_exactly_what_was_given_and_shows_every_character(
    body: str, parent: str | None, source: dict[str, Any] | None
) -> None:
    target = Target("https://community.example/posts", "community.example", "k" * 40, 20)
    request = build_request(
        target, replace(TEXT, body=body, parent_post_id=parent, verified_trade_source=source)
    )
    given = {"body": body, "parentPostId": parent, "verifiedTradeSource": source}
    assert json.loads(request.content) == {name: value for name, value in given.items() if value is not None}
    assert request.content.decode().isprintable()
    assert request.shown()[-1].encode() == request.content
    assert target.key not in "\n".join(request.shown())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "blank"),
        (" \n\t\u3000", "blank"),
        ("x" * 100_001, "100,001 characters"),
        ("\x01" * 68_267, "409,602 bytes"),
        ("a\x00b", "NUL"),
        ("\ud800", "surrogate"),
    ],
    ids=["empty", "blank", "characters", "bytes", "NUL", "half a character"],
)
def test_a_body_that_cannot_be_published_is_refused(seat: Seat, body: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        seat.book.begin_publication(PERSON, replace(TEXT, body=body))
    assert seat.entries("publication.begun") == []


@pytest.mark.parametrize(
    "body", ["x" * 100_000, "😀" * 100_000, "\x01" * 68_266], ids=["a", "wide", "escaped"]
)
def test_the_largest_body_is_kept_whole(seat: Seat, body: str) -> None:
    try_once(seat.book, PUBLISHED, replace(TEXT, body=body))
    assert seat.last_content("publication.begun")["body"] == body


@pytest.mark.parametrize("value", [[1], {"a": float("nan")}, {"a": "x" * 70_000}])
def test_a_verified_source_is_a_json_object_within_bounds(value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_publication(replace(TEXT, verified_trade_source=value))
    assert (caught.value.field or "").startswith("verified_trade_source")


@pytest.mark.parametrize("field", ["marketplace_listing_id", "community_publication_id", "parent_post_id"])
@pytest.mark.parametrize("value", ["", "  ", "x" * 129, "a\nb", "a\0b"])
def test_an_id_that_is_none_is_refused_by_name(field: str, value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_publication(replace(TEXT, **{field: value}))
    assert caught.value.field == field
