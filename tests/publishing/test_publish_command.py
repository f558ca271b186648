"""deskbook publish against a real TLS server: what is sent, what the ledger says of it, and what never leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.tokens import new_token, token_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import Community, Owner

pytestmark = pytest.mark.slow


def test_the_public_reason_of_an_action_is_posted_and_its_post_is_recorded(
    owner: Owner, community: Community
) -> None:
    done = owner.publish(owner.action)
    assert (done.returncode, done.stderr) == (0, "")
    path, headers, content = community.taken()
    assert path == "/community/agent/posts"
    assert headers["authorization"] == f"Bearer {owner.key}"
    assert headers["content-type"] == "application/json"
    assert json.loads(content) == {"body": owner.public}
    begun, ended = owner.entries()
    assert begun == (
        "publication.begun",
        {"action_id": owner.action, "body": owner.public, "endpoint": community.url},
    )
    assert ended == (
        "publication.ended", {"outcome": "published", "post_id": "post-1", "http_status": 201},
    )  # fmt: skip
    assert "published as post post-1" in done.stdout


def test_what_is_shown_is_what_is_sent_byte_for_byte_with_the_key_masked(
    owner: Owner, community: Community
) -> None:
    text = 'line\n\ttab "quoted" \u202eright to left\u200b, 目标价 😀\u00a0\U000e0041'
    done = owner.publish("--body", owner.write(text), "--despite-warnings")
    _, headers, content = community.taken()
    assert json.loads(content) == {"body": text}
    shown = done.stdout.splitlines()
    assert shown[0] == f"POST {community.url}"
    assert content.decode() in shown
    told = dict(line.split(": ", 1) for line in shown[1 : shown.index("")])
    assert {name.lower() for name in told} == set(headers)
    assert told.pop("Authorization") == "Bearer ********"
    assert {name.lower(): value for name, value in told.items()} == {
        name: value for name, value in headers.items() if name != "authorization"
    }


def test_every_reference_is_sent_under_the_name_that_the_community_has_for_it(
    owner: Owner, community: Community
) -> None:
    source = {"tradeId": "t-9", "legs": [1, 2.5], "verified": True}
    done = owner.publish(
        owner.action, "--marketplace-listing-id", "list-1", "--publication-id", "pub-2",
        "--parent-post-id", "post-0", "--verified-trade-source", json.dumps(source),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(community.taken()[2]) == {
        "body": owner.public,
        "marketplaceListingId": "list-1",
        "publicationId": "pub-2",
        "parentPostId": "post-0",
        "verifiedTradeSource": source,
    }
    assert owner.entries()[0][1] == {
        "action_id": owner.action,
        "body": owner.public,
        "endpoint": community.url,
        "marketplace_listing_id": "list-1",
        "community_publication_id": "pub-2",
        "parent_post_id": "post-0",
        "verified_trade_source": source,
    }


def test_a_number_for_the_id_of_a_post_is_kept_as_text(owner: Owner, community: Community) -> None:
    community.reply = community.answering(200, {"post": {"id": 42}})
    assert owner.publish(owner.action).returncode == 0
    assert owner.entries()[-1][1]["post_id"] == "42"


def test_without_a_yes_nothing_is_begun_and_nothing_sent(owner: Owner, community: Community) -> None:
    for said in ("n\n", "\n", ""):
        done = owner.publish(owner.action, yes=False, said=said)
        assert done.returncode == 1
        assert f"POST {community.url}" in done.stdout
        assert done.stderr.endswith("Nothing was sent.\n")
        assert "Aborted" not in done.stderr
    assert owner.entries() == []
    assert community.asked.empty()
    assert owner.publish(owner.action, yes=False, said="y\n").returncode == 0


def test_a_secret_far_inside_a_long_text_is_found(owner: Owner) -> None:
    words = "word " * 9_000
    done = owner.publish("--body", owner.write(f"{words}IBAN DE89370400440532013000 {words}"))
    assert done.returncode == 2
    assert "account data" in done.stderr


def test_a_file_is_sent_as_it_is(owner: Owner, community: Community) -> None:
    text = "  \r\nleading and trailing stay \r\n\n "
    assert owner.publish("--body", owner.write(text)).returncode == 0
    assert json.loads(community.taken()[2]) == {"body": text}
    assert owner.entries()[0][1]["body"] == text


def test_the_private_reason_is_never_sent(owner: Owner, community: Community) -> None:
    assert owner.publish(owner.action).returncode == 0
    assert owner.private.encode() not in community.taken()[2]
    silent = owner.intend(None)
    done = owner.publish(silent)
    assert done.returncode == 1
    assert "no public reason" in done.stderr
    assert owner.private not in done.stdout + done.stderr
    assert community.asked.empty()


def test_a_public_reason_that_is_the_private_one_is_refused(owner: Owner, community: Community) -> None:
    reason = f"{owner.private} " * 9
    leaked = owner.intend(reason.replace(" ", "\n ").capitalize(), reason)
    done = owner.publish(leaked, "--despite-warnings")
    assert done.returncode == 2
    assert "is its private one" in done.stderr
    assert "--body" in done.stderr
    assert owner.private not in done.stdout + done.stderr
    assert owner.entries() == []
    assert community.asked.empty()


def test_a_text_that_is_or_holds_a_private_reason_is_warned_of(owner: Owner, community: Community) -> None:
    reason = " ".join([owner.private] * 10)
    for text in (f"{reason}\n", f"Why we bought:\n{reason.upper()}\nSo long."):
        path = owner.write(text)
        asked = owner.publish("--body", path, yes=False, said="n\n")
        assert f"warning: the body seems to hold the private reason of {owner.action}" in asked.stderr
        refused = owner.publish("--body", path)
        assert (refused.returncode, "--despite-warnings" in refused.stderr) == (2, True)
    assert owner.entries() == []
    assert community.asked.empty()
    assert owner.publish("--body", path, "--despite-warnings").returncode == 0
    part = owner.publish("--body", owner.write(f"{owner.private} and no more"))
    assert (part.returncode, part.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "--body FILE"),
        (["act_1", "--body", "x"], 2, "--body FILE"),
        (["act_0000000000000"], 1, "no order action"),
        (["--body", "absent.txt"], 2, "cannot be read"),
        (["act_1", "--run", "r"], 2, "from a run"),
        (["act_1", "--verified-trade-source", "{"], 2, "not valid JSON"),
    ],
)
def test_wrong_usage_is_told_and_nothing_is_sent(
    owner: Owner, community: Community, words: list[str], code: int, says: str
) -> None:
    done = owner.publish(*words)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert owner.entries() == []
    assert community.asked.empty()


def test_only_an_order_action_has_a_public_reason(owner: Owner, community: Community) -> None:
    with owner.opened() as book:
        (begun,) = (entry for entry in book.show(owner.action) if entry.event_type == "order_action.recorded")
    decision = json.loads(begun.content)["decision_id"]
    done = owner.publish(decision)
    assert (done.returncode, community.asked.empty()) == (1, True)
    assert "no order action" in done.stderr


def test_what_is_published_is_not_published_again(owner: Owner, community: Community) -> None:
    assert owner.publish(owner.action).returncode == 0
    for more in ([], ["--reconciled"], ["--parent-post-id", "post-0"]):
        done = owner.publish(owner.action, *more)
        assert done.returncode == 1
        assert "post-1" in done.stderr
    path = owner.write(owner.public)
    assert "post-1" in owner.publish("--body", path).stderr
    assert owner.outcomes() == ["published"]
    assert owner.publish("--body", path, "--parent-post-id", "post-1").returncode == 0


def test_reconciled_needs_something_to_have_looked_for(owner: Owner, community: Community) -> None:
    done = owner.publish(owner.action, "--reconciled")
    assert done.returncode == 2
    assert "--reconciled" in done.stderr
    assert owner.entries() == []


def test_the_key_is_nowhere(owner: Owner, community: Community) -> None:
    community.reply = community.answering(200, {"post": {"id": owner.key}})
    told = owner.publish(owner.action)
    community.reply = community.answering(403, {"error": f"bad key {owner.key}"})
    said_no = owner.publish("--body", owner.write("something else"))
    in_body = owner.publish("--body", owner.write(f"the key is {owner.key}"), "--despite-warnings")
    assert [done.returncode for done in (told, said_no, in_body)] == [1, 1, 2]
    assert owner.outcomes() == ["unknown", "refused"]
    assert all(owner.key not in done.stdout + done.stderr for done in (told, said_no, in_body))
    assert owner.key.encode() not in owner.kept()


def test_the_query_of_the_address_is_sent_and_not_kept(owner: Owner, community: Community) -> None:
    owner.configure(f"{community.url}?space=hush#part")
    assert owner.publish(owner.action).returncode == 0
    assert community.taken()[0] == "/community/agent/posts?space=hush"
    assert owner.entries()[0][1]["endpoint"] == community.url
    assert b"hush" not in owner.kept()


def test_the_entries_say_who_published(owner: Owner, community: Community) -> None:
    assert owner.publish(owner.action, "--as", "pat").returncode == 0
    with owner.opened() as book:
        written = [e for e in book.log(EntryFilter(limit=1_000)) if e.event_type.startswith("publication.")]
    assert {(entry.agent, entry.profile, entry.tool) for entry in written} == {("pat", "reviewer", "publish")}
    assert len({entry.subject_id for entry in written}) == 1


def test_what_seems_unsafe_is_said_before_the_question(owner: Owner, community: Community) -> None:
    path = owner.write("account 12345678 has \x1b[31m room, log in with " + "hf_" + "abcDEF123" * 4)
    asked = owner.publish("--body", path, yes=False, said="n\n")
    assert "warning: the body seems to hold account data" in asked.stderr
    assert "warning: the body seems to hold control characters" in asked.stderr
    assert "warning: the body seems to hold an access token" in asked.stderr
    assert "\x1b" not in asked.stdout
    refused = owner.publish("--body", path)
    assert refused.returncode == 2
    assert "--despite-warnings" in refused.stderr
    assert owner.entries() == []
    assert owner.publish("--body", path, "--despite-warnings").returncode == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [("x" * 100_001, "100,001 characters"), (b"x" * 409_601, "409,600 bytes"), (b"caf\xe9", "UTF-8")],
    ids=["characters", "bytes", "no UTF-8"],
)
def test_a_file_that_cannot_be_published_is_refused_before_anything(
    owner: Owner, community: Community, text: str | bytes, says: str
) -> None:
    done = owner.publish("--body", owner.write(text), "--despite-warnings")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert owner.entries() == []
    assert community.asked.empty()


def test_the_largest_body_is_published(owner: Owner, community: Community) -> None:
    text = "😀" * 100_000
    done = owner.publish("--body", owner.write(text))
    assert done.returncode == 0, done.stderr
    assert json.loads(community.taken()[2]) == {"body": text}


@pytest.mark.parametrize("holder", ["nobody", "a stranger", "ann", "boss", "the community"])
def test_nobody_publishes_without_a_reviewers_proof(owner: Owner, community: Community, holder: str) -> None:
    owner.configure(community.url, '[agents.boss]\nprofile = "reviewer"\n')
    if holder in {"ann", "boss"}:
        token: str | None = new_token(token_path(owner.root), holder).token
    else:
        token = {"nobody": None, "a stranger": "dbr_" + "a" * 52, "the community": owner.key}[holder]
    done = owner.publish(owner.action, "--as", "pat", **{owner.token_variable: token})
    assert done.returncode in {1, 2}
    assert "Traceback" not in done.stderr
    assert token is None or token not in done.stdout + done.stderr
    assert owner.entries() == []
    assert community.asked.empty()


def test_a_target_that_is_not_whole_or_safe_is_told_before_anything(
    owner: Owner, community: Community
) -> None:
    done = owner.publish(owner.action, **{owner.key_variable: new_token(token_path(owner.root), "ann").token})
    assert (done.returncode, "is a token of this desk" in done.stderr) == (2, True)
    owner.configure("http://192.0.2.1/posts")
    done = owner.publish(owner.action)
    assert (done.returncode, "plain http to another machine" in done.stderr) == (2, True)
    assert owner.entries() == []


def test_a_ledger_with_publications_verifies_is_logged_and_comes_back_from_an_export(
    owner: Owner, community: Community, tmp_path: Path
) -> None:
    assert owner.publish(owner.action).returncode == 0
    assert owner.run("verify").returncode == 0
    logged = owner.run("log").stdout.splitlines()
    assert any(" publication.begun  pub_" in line and owner.action in line for line in logged)
    assert logged[-1].endswith("published, post-1, 201")
    out = tmp_path / "out"
    assert owner.run("export", str(out), "--format", "jsonl").returncode == 0
    back = owner.run("import", "jsonl", str(next(out.glob("*.jsonl"))), "--root", str(tmp_path / "other"))
    assert back.returncode == 0, back.stderr
