"""What a request's fate means, by a real server: published by its word alone, refused where nothing came of it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from server.publishing.sending import REPLY_BYTES

if TYPE_CHECKING:
    from conftest import Community, MakeCertificate

Send = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("status", [200, 201, 202, 299])
@pytest.mark.parametrize(
    ("post_id", "kept"), [("post-1", "post-1"), (42, "42"), ("目标价", "目标价"), ("x" * 128, "x" * 128)]
)
def test_a_post_that_is_named_is_published(
    send: Send, community: Community, status: int, post_id: object, kept: str
) -> None:
    community.reply = community.answering(status, {"post": {"id": post_id, "body": "x"}, "more": 1})
    assert send(community.url) == {"outcome": "published", "http_status": status, "post_id": kept}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 429, 499])
def test_a_no_is_refused(send: Send, community: Community, status: int) -> None:
    community.reply = community.answering(status, {"post": {"id": "post-1"}})
    assert send(community.url) == {"outcome": "refused", "http_status": status, "error_type": "said_no"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(send: Send, community: Community, status: int) -> None:
    community.reply = community.answering(status, b"", Location=f"{community.url}/elsewhere")
    assert send(community.url) == {"outcome": "refused", "http_status": status, "error_type": "redirect"}
    community.taken()
    assert community.asked.empty()


@pytest.mark.parametrize("status", [300, 303, 304, 305, 306, 399])
def test_a_3xx_that_sends_the_request_nowhere_else_may_have_published(
    send: Send, community: Community, status: int
) -> None:
    community.reply = community.answering(status, b"", Location=f"{community.url}/post-1")
    assert send(community.url) == {"outcome": "unknown", "http_status": status, "error_type": "unclear"}
    community.taken()
    assert community.asked.empty()


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599, 999])
def test_a_server_that_failed_may_have_published(send: Send, community: Community, status: int) -> None:
    community.reply = community.answering(status, {"post": {"id": "post-1"}})
    assert send(community.url) == {"outcome": "unknown", "http_status": status, "error_type": "failed"}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage",
        b"\xff\xfe",
        b"[" * 60_000,
        b'{"post": {"id": 1' + b"0" * 200 + b"}}",
        b'{"post": {"id": 1' + b"0" * 5_000 + b"}}",
        {"post": None},
        {"post": {}},
        {"post": {"id": None}},
        {"post": {"id": ""}},
        {"post": {"id": True}},
        {"post": {"id": 1.5}},
        {"post": {"id": ["post-1"]}},
        {"post": {"id": "a\nb"}},
        {"post": {"id": "\ud800"}},
        {"post": {"id": "x" * 129}},
        {"post": ["id"]},
        {"id": "post-1"},
        ["post"],
        "post",
        None,
    ],
    ids=repr,
)
def test_an_answer_that_names_no_post_is_unknown(send: Send, community: Community, answer: Any) -> None:
    community.reply = community.answering(200, answer)
    assert send(community.url) == {"outcome": "unknown", "http_status": 200, "error_type": "no_post"}


@pytest.mark.parametrize(("more", "outcome"), [(0, "published"), (1, "unknown")])
def test_an_answer_is_read_up_to_64_kib(send: Send, community: Community, more: int, outcome: str) -> None:
    answer = b'{"post": {"id": "post-1"}}'
    community.reply = community.answering(200, answer + b" " * (REPLY_BYTES - len(answer) + more))
    assert send(community.url)["outcome"] == outcome


def test_a_server_that_always_sends_something_and_never_the_answer_holds_nobody(
    send: Send, community: Community
) -> None:
    community.reply = community.chattering
    assert send(community.url, seconds=1) == {"outcome": "unknown", "error_type": "timeout"}


def test_an_answer_that_breaks_off_is_unknown(send: Send, community: Community) -> None:
    community.reply = community.answering(
        200, b'{"post": {"id": "a"}}', **{"Content-Length": "1000", "Connection": "close"}
    )
    assert send(community.url) == {"outcome": "unknown", "error_type": "broken_off"}


def test_a_server_that_is_not_there_was_sent_nothing(send: Send) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}/posts"
        assert send(url) == {"outcome": "refused", "error_type": "not_connected"}


def test_a_server_that_never_greets_was_sent_nothing(send: Send) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        url = f"https://127.0.0.1:{deaf.getsockname()[1]}/posts"
        assert send(url, seconds=1) == {"outcome": "refused", "error_type": "timeout"}


def test_a_server_that_speaks_no_tls_was_sent_nothing(
    send: Send, start_community: Callable[..., Community]
) -> None:
    plain = start_community()
    ended = send(plain.url.replace("http:", "https:"))
    assert ended == {"outcome": "refused", "error_type": "not_connected"}
    assert plain.asked.empty()


@pytest.mark.parametrize("told", [{"address": "10.0.0.1"}, {"days": -1}], ids=str)
def test_a_certificate_for_another_address_or_an_expired_one_is_sent_nothing(
    send: Send, make_certificate: MakeCertificate, start_community: Callable[..., Community], told: Any
) -> None:
    theirs = make_certificate(**told)
    community = start_community(theirs)
    assert send(community.url, trusted=theirs[0]) == {"outcome": "refused", "error_type": "certificate"}
    assert community.asked.empty()


def test_a_certificate_that_nobody_vouches_for_is_sent_nothing(send: Send, community: Community) -> None:
    assert send(community.url, trusted=None) == {"outcome": "refused", "error_type": "certificate"}
    assert community.asked.empty()
