"""What the ledger says when a publication is refused, breaks off or is never answered, and what may follow it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Community, Owner

pytestmark = pytest.mark.slow


def ended(owner: Owner) -> dict[str, Any]:
    """How the last publication ended."""
    kind, content = owner.entries()[-1]
    assert kind == "publication.ended"
    return content


def begun_alone(owner: Owner) -> bool:
    return owner.outcomes() == [None]


def test_a_no_of_the_server_is_refused_and_may_be_tried_again(owner: Owner, community: Community) -> None:
    community.reply = community.answering(403, {"error": "some words of the server"})
    done = owner.publish(owner.action)
    assert done.returncode == 1
    assert "refused: the server said no (403)" in done.stdout
    assert "some words" not in done.stdout + done.stderr
    assert ended(owner) == {"outcome": "refused", "http_status": 403, "error_type": "said_no"}
    community.reply = community.answering(201, {"post": {"id": "post-2"}})
    assert owner.publish(owner.action).returncode == 0
    assert owner.outcomes() == ["refused", "published"]


def test_a_redirect_is_told_as_refused(owner: Owner, community: Community) -> None:
    community.reply = community.answering(302, b"", Location=f"{community.url}/elsewhere")
    done = owner.publish(owner.action)
    assert done.returncode == 1
    assert "refused: the server answered with a redirect, which is not followed (302)" in done.stdout
    assert ended(owner) == {"outcome": "refused", "http_status": 302, "error_type": "redirect"}


def test_a_server_that_failed_leaves_it_unknown(owner: Owner, community: Community) -> None:
    community.reply = community.answering(500, {"post": {"id": "post-1"}})
    done = owner.publish(owner.action)
    assert done.returncode == 1
    assert "unknown: the server failed (500); it may be public" in done.stdout
    assert ended(owner) == {"outcome": "unknown", "http_status": 500, "error_type": "failed"}


def test_no_answer_after_the_request_was_taken_is_unknown(owner: Owner, community: Community) -> None:
    owner.configure(community.url, timeout=1)
    community.reply = community.silent
    done = owner.publish(owner.action)
    assert done.returncode == 1
    assert "unknown: no answer came in time; it may be public" in done.stdout
    assert "--reconciled" in done.stdout
    community.taken()
    assert ended(owner) == {"outcome": "unknown", "error_type": "timeout"}


def test_a_connection_that_breaks_off_after_the_request_is_unknown(
    owner: Owner, community: Community
) -> None:
    community.reply = community.cut
    done = owner.publish(owner.action)
    assert done.returncode == 1
    assert ended(owner) == {"outcome": "unknown", "error_type": "broken_off"}
    community.taken()
    assert community.asked.empty()


def test_a_certificate_that_nobody_trusts_is_sent_nothing(owner: Owner, community: Community) -> None:
    done = owner.publish(owner.action, SSL_CERT_FILE=None)
    assert done.returncode == 1
    assert "certificate" in done.stdout
    assert ended(owner) == {"outcome": "refused", "error_type": "certificate"}
    assert community.asked.empty()


def test_certificates_that_cannot_be_read_are_told_before_anything_is_begun(
    owner: Owner, tmp_path: Path
) -> None:
    for path in (tmp_path / "absent.pem", owner.config):
        done = owner.publish(owner.action, SSL_CERT_FILE=str(path))
        assert done.returncode == 2
        assert "SSL_CERT_FILE" in done.stderr
        assert "Traceback" not in done.stderr
    assert owner.entries() == []


def test_plain_http_to_this_machine_is_served(
    owner: Owner, start_community: Callable[..., Community]
) -> None:
    community = start_community()
    owner.configure(community.url)
    assert owner.publish(owner.action).returncode == 0
    assert owner.outcomes() == ["published"]


def test_the_proxies_that_the_environment_names_are_not_used(owner: Owner) -> None:
    proxy = "http://127.0.0.1:1"
    assert owner.publish(owner.action, HTTPS_PROXY=proxy, ALL_PROXY=proxy, https_proxy=proxy).returncode == 0


def test_an_unknown_one_is_tried_again_only_by_who_looked_for_it(owner: Owner, community: Community) -> None:
    community.reply = community.cut
    owner.publish(owner.action)
    community.taken()
    community.reply = community.answering(201, {"post": {"id": "post-7"}})
    again = owner.publish(owner.action)
    assert again.returncode == 1
    assert "--reconciled" in again.stderr
    assert community.asked.empty()
    assert owner.publish(owner.action, "--reconciled").returncode == 0
    begun = [content for kind, content in owner.entries() if kind == "publication.begun"]
    assert begun[1]["reconciled"].startswith("pub_")
    assert owner.outcomes() == ["unknown", "published"]
    assert "post-7" in owner.publish(owner.action, "--reconciled").stderr


def test_a_killed_command_leaves_it_unknown(owner: Owner, community: Community) -> None:
    community.reply = community.silent
    process = owner.start(owner.action)
    community.taken()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert begun_alone(owner)
    community.reply = community.answering(201, {"post": {"id": "post-3"}})
    done = owner.publish(owner.action)
    assert done.returncode == 1
    assert "--reconciled" in done.stderr
    assert community.asked.empty()
    assert owner.publish(owner.action, "--reconciled").returncode == 0


def test_an_interrupted_command_says_that_it_is_unknown(owner: Owner, community: Community) -> None:
    community.reply = community.silent
    process = owner.start(owner.action)
    community.taken()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 1
    assert "unknown: it was interrupted" in out
    assert "Traceback" not in err
    assert ended(owner) == {"outcome": "unknown", "error_type": "interrupted"}


def test_a_second_command_sends_nothing_while_the_first_is_under_way(
    owner: Owner, community: Community
) -> None:
    accept = community.reply

    def late(handler: Any) -> None:
        community.silent(handler)
        accept(handler)

    community.reply = late
    first = owner.start(owner.action)
    community.taken()
    second = owner.publish(owner.action)
    assert second.returncode == 1
    assert "under way" in second.stderr
    community.released.set()
    out, _ = first.communicate()
    assert (first.returncode, "published as post post-1" in out) == (0, True)
    assert community.asked.empty()
    assert owner.outcomes() == ["published"]
