"""Every path by which an agent identity could approve, sign off, redact, publish or widen itself is tried, and fails.

Reviewer and harness profiles are agents' too, and one profile here is allowed every action there is. Whatever they
send in arguments, `_meta` and headers, what waits goes on waiting, and the ledger says who really called.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from server.commands.place import find_place
from server.identity import LOCAL_AGENT
from server.permissions import PROFILES, Action
from server.reviewer_file import read_reviewers, reviewer_path
from server.reviewers import add_token
from server.tokens import new_token, token_path
from server.tools import TOOLS
from store import Book, Caller, Filter, SearchRequest, Written
from store.commands import OpenThesis, Propose, ProposeLesson, Remember, UpdateThesis
from store.entry import Entry
from store.errors import PermissionDenied
from store.review_commands import Approve, Reject, Renew, Retire, Revise, Settle, SignOff
from store.rows import EntryFilter

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
VALID: dict[str, dict[str, Any]] = runpy.run_path(str(ROOT / "tests" / "fixtures" / "permission_matrix.py"))[
    "VALID"
]
GUARD = 60.0
ERAS = {"legacy": "legacy", "modern": "2026-07-28"}
NAMES = (*PROFILES, "everything")
"""An agent for each profile, named as `agent-` and the profile; one profile of its own holds every action."""

CONFIG = (
    "[limits]\ncalls_per_minute = 1_000_000\n"
    f"[profiles.everything]\nallow = {json.dumps([action.value for action in Action])}\n"
    '[agents.author]\nprofile = "trader"\n'
    + "".join(f'[agents.agent-{name}]\nprofile = "{name}"\n' for name in NAMES)
    + "[approval]\n"
    + "".join(
        f'{kind} = "review"\n' for kind in ("memory", "proposal", "risk_note", "decision", "lesson", "thesis")
    )
)
WAITS = "zqxwaits"
CLAIMS: tuple[dict[str, Any], ...] = (
    {"review_state": "approved"},
    {"status": "approved"},
    {"status": "validated"},
    {"approved": True},
    {"agent": "Ann"},
    {"profile": "reviewer"},
    {"reviewer": True},
    {"as": "Ann", "as_name": "Ann"},
    {"tool": "review", "action": "approve"},
    {"standing": "observed", "observer": True},
    {"host": "confirmed", "host_confirmed": True},
)
META = {
    "deskbook/agent": "Ann",
    "deskbook/profile": "reviewer",
    "deskbook/reviewer": "true",
    "deskbook/review_state": "approved",
    "deskbook/host": "confirmed",
    "deskbook/session_id": "Ann",
    "agent": "Ann",
    "reviewer": True,
}
HEADERS = {
    "Deskbook-Agent": "Ann",
    "Deskbook-Profile": "reviewer",
    "Deskbook-Reviewer": "true",
    "Deskbook-Session": "Ann",
    "X-Forwarded-User": "Ann",
    "X-Reviewer": "Ann",
}
ENVIRON = {
    "DESKBOOK_REVIEWER": "Ann",
    "DESKBOOK_AS": "Ann",
    "DESKBOOK_PROFILE": "reviewer",
    "DESKBOOK_SESSION": "Ann",
}
INVENTED = (
    "approve", "approve_memory", "review", "review_approve", "review/approve", "reject_memory", "sign_off",
    "redact", "redact_memory", "publish", "reviewer_add", "add", "settle", "renew", "verify", "export",
)  # fmt: skip
LOGGED = ("session.started", "permission.denied", "call.failed")
DECIDED = (
    "review.approved", "review.rejected", "review.edited", "review.signed_off", "review.renewed", "review.settled",
    "memory.redacted", "publication.begun", "publication.ended",
)  # fmt: skip


class Desk:
    """A root with memories of `author` that wait, a reviewer, and a bearer token for every agent."""

    def __init__(self, folder: Path) -> None:
        self.root, self.config = folder / "root", folder / "desk.toml"
        self.config.write_text(CONFIG, encoding="utf-8")
        self.reviewer_token = add_token(reviewer_path(self.root), "Ann")
        self.tokens = {name: new_token(token_path(self.root), f"agent-{name}").token for name in NAMES}
        with closing(self.book()) as book:
            self.waiting = tuple(
                self._write(book, command)
                for command in (
                    Propose(text=f"{WAITS} sell", symbol="NVDA"),
                    ProposeLesson(text=f"{WAITS} lesson", symbol="NVDA"),
                    Remember(text=f"{WAITS} note"),
                    OpenThesis(text=f"{WAITS} thesis", symbol="NVDA"),
                )
            )
            self.hashes = {each.id: book.review_item(each.id).shown_sha256 for each in self.waiting}

    def book(self) -> Book:
        return find_place(self.config, self.root, None, None, environ={}).open(make=True)

    def entries(self) -> list[Entry]:
        with closing(self.book()) as book:
            return book.log(EntryFilter(limit=1_000_000))

    def arguments(self, tool: str) -> dict[str, Any]:
        """Arguments of a tool that reach for what waits, wherever it takes an id."""
        proposal, lesson, note, thesis = (each.id for each in self.waiting)
        aimed = {"memory_id": proposal, "lesson_id": lesson, "thesis_id": thesis, "other_id": note}
        given = dict(VALID.get(tool, {"now": "2026-03-02T14:30:00Z"} if tool == "advance_clock" else {}))
        given |= {name: value for name, value in aimed.items() if name in given}
        if tool == "remember":
            given["supersedes"] = note
        if tool == "validate_lesson":
            given["outcome_ids"] = [self.waiting[1].event_id]
        return given

    @staticmethod
    def _write(book: Book, command: Any) -> Written:
        return book.execute(Caller("author", "trader", "ses-author", "remember"), command)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def own_environ() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }
    return kept | {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def url(desk: Desk) -> Iterator[str]:
    """The address of one HTTP server for all agents."""
    words = [
        "serve",
        "--transport",
        "http",
        "--port",
        "0",
        "--root",
        str(desk.root),
        "--config",
        str(desk.config),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "server", *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        cwd="/", env=own_environ() | ENVIRON,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"listening on (\S+)", line):
                yield found[1]
                break
        else:
            pytest.fail("the server does not listen")
        process.kill()


@asynccontextmanager
async def over_http(url: str, token: str, era: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}", **HEADERS}
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=GUARD))
        source = streamable_http_client(f"{url}/mcp", http_client=http)
        yield await stack.enter_async_context(Client(source, mode=ERAS[era]))


def over_stdio(desk: Desk, agent: str | None, era: str) -> Client:
    words = ["-m", "server", "serve", "--root", str(desk.root)]
    if agent is not None:
        words += ["--config", str(desk.config), "--agent", agent]
    command = StdioServerParameters(command=sys.executable, args=words, env=own_environ() | ENVIRON, cwd="/")
    return Client(command, mode=ERAS[era])


async def attack(desk: Desk, client: Client) -> int:
    """Try every tool, resource and prompt with what a reviewer would say; gives how many calls were refused."""
    refused = 0
    for tool in TOOLS:
        plain = desk.arguments(tool)
        hashes = {"shown": desk.hashes[desk.waiting[0].id], "hash": desk.hashes[desk.waiting[0].id]}
        for claim in ({}, *CLAIMS, hashes, {"token": desk.reviewer_token}):
            answer = await client.call_tool(tool, {**plain, **claim}, meta=META)  # type: ignore[arg-type]
            refused += bool(answer.is_error)
    for name in INVENTED:
        refused += await failed(client.call_tool(name, {"memory_id": desk.waiting[0].id, "as": "Ann"}))
    for each in desk.waiting:
        for uri in (
            f"memory://memory/{each.id}?review_state=approved", f"memory://memory/{each.id}/approve",
            f"memory://review/{each.id}", f"review://{each.id}/approve", "memory://review",
        ):  # fmt: skip
            refused += await failed(client.read_resource(uri))
    for name in ("approve", "review", "decision_journal"):
        refused += await failed(client.get_prompt(name, {"memory_id": desk.waiting[0].id, "reviewer": "Ann"}))
    return refused


async def failed(asked: Any) -> bool:
    try:
        answer = await asked
    except MCPError:
        return True
    return bool(getattr(answer, "is_error", False))


def check_nothing_gained(desk: Desk, before: int, agents: Mapping[str, str]) -> list[Entry]:
    """What waited waits, nobody was taken for another, and nothing was decided; gives the entries since."""
    entries = [entry for entry in desk.entries() if entry.sequence > before]
    assert {entry.event_type for entry in entries}.isdisjoint(DECIDED)
    for entry in entries:
        assert agents.get(entry.agent) == entry.profile, (entry.sequence, entry.agent, entry.profile)
        assert entry.tool in (*TOOLS, None) or entry.event_type in LOGGED
        assert '"approved"' not in entry.content or entry.event_type == "memory.retrieved"
        assert desk.reviewer_token not in entry.content
    with closing(desk.book()) as book:
        for each in desk.waiting:
            item = book.review_item(each.id)
            assert item.version.review_state == "pending"
            assert item.shown_sha256 == desk.hashes[each.id]
            assert item.version.status == each.status
        found = book.search(
            Caller("author", "trader", "ses-author", "search_memory"),
            SearchRequest(query=WAITS, conditions=Filter()),
        )
        assert found.body["hits"] == []
    assert [each.name for each in read_reviewers(reviewer_path(desk.root)).reviewers] == ["Ann"]
    return entries


@pytest.mark.parametrize("era", ERAS)
async def test_no_agent_over_http_approves_its_own_or_anothers_by_any_tool_or_resource_p139(
    desk: Desk, url: str, era: str
) -> None:
    before = desk.entries()[-1].sequence
    for name in NAMES:
        async with over_http(url, desk.tokens[name], era) as client:
            assert await attack(desk, client) > len(TOOLS)
    entries = check_nothing_gained(desk, before, {f"agent-{name}": name for name in NAMES})
    for name in NAMES:
        mine = [entry for entry in entries if entry.agent == f"agent-{name}"]
        logged = {entry.event_type for entry in mine}
        assert logged & {"permission.denied", "call.failed"}, name


@pytest.mark.parametrize("era", ERAS)
async def test_no_agent_over_stdio_approves_its_own_or_anothers_by_any_tool_or_resource_p139(
    desk: Desk, era: str
) -> None:
    before = desk.entries()[-1].sequence
    for name in NAMES:
        async with over_stdio(desk, f"agent-{name}", era) as client:
            assert await attack(desk, client) > len(TOOLS)
    check_nothing_gained(desk, before, {f"agent-{name}": name for name in NAMES})


async def test_a_server_without_a_config_approves_nothing_either(desk: Desk) -> None:
    before = desk.entries()[-1].sequence
    async with over_stdio(desk, None, "modern") as client:
        assert await attack(desk, client) > len(TOOLS)
    check_nothing_gained(desk, before, {LOCAL_AGENT: "solo"})


async def test_attempts_by_tools_that_are_not_there_and_at_others_memories_are_logged_p139(
    desk: Desk, url: str
) -> None:
    before = desk.entries()[-1].sequence
    proposal = desk.waiting[0].id
    async with over_http(url, desk.tokens["reviewer"], "modern") as client:
        told = await client.call_tool("approve_memory", {"memory_id": proposal, "reviewer": "Ann"})
        assert json.loads(told.content[0].text)["code"] == "permission_denied"  # type: ignore[union-attr]
        for status in ("withdrawn", "approved"):
            told = await client.call_tool("resolve_memory", {"memory_id": proposal, "status": status})
            assert told.is_error
    entries = check_nothing_gained(desk, before, {"agent-reviewer": "reviewer"})
    found = [(entry.event_type, json.loads(entry.content).get("tool")) for entry in entries]
    assert [each for each in found if each[0] != "session.started"] == [
        ("permission.denied", "review"),
        ("call.failed", "resolve_memory"),
        ("call.failed", "resolve_memory"),
    ]


def test_what_an_author_changes_after_it_was_approved_waits_again(desk: Desk) -> None:
    thesis = desk.waiting[3]
    with closing(desk.book()) as book:
        ann = Caller("Ann", "reviewer", "ses-ann", "review", reviewer=True)
        author = Caller("author", "trader", "ses-author", "update_thesis")
        asked = SearchRequest(query=WAITS, conditions=Filter())
        book.execute(ann, Approve(memory_id=thesis.id, shown=desk.hashes[thesis.id]))
        assert [hit["id"] for hit in book.search(author, asked).body["hits"]] == [thesis.id]
        book.execute(author, UpdateThesis(thesis_id=thesis.id, text=f"{WAITS} the contrary"))
        assert book.review_item(thesis.id).version.review_state == "pending"
        (hit,) = book.search(author, asked).body["hits"]
        assert (hit["trust"], "contrary" in hit["text"]) == ("approved", False)


def test_a_reviewers_token_opens_no_session_and_an_agents_profile_no_decision(desk: Desk, url: str) -> None:
    for token in (desk.reviewer_token, f"dbk_{desk.reviewer_token[4:14]}_{desk.reviewer_token[4:]}"):
        answer = httpx2.post(
            f"{url}/mcp", json={}, headers={"Authorization": f"Bearer {token}"}, timeout=GUARD
        )
        assert answer.status_code == 401
        assert desk.reviewer_token not in answer.text


def test_the_store_decides_for_no_caller_but_a_reviewer_whatever_its_profile(desk: Desk) -> None:
    proposal, lesson, note, _ = desk.waiting
    with closing(desk.book()) as book:
        before = book.head().sequence
        for profile in NAMES:
            caller = Caller("Ann", profile, "ses", "review", observer=True, resolves_any=True)
            for command in (
                Approve(memory_id=proposal.id, shown=desk.hashes[proposal.id]),
                Approve(memory_id=proposal.id, shown=desk.hashes[proposal.id], text="other words"),
                Reject(memory_id=proposal.id, shown=desk.hashes[proposal.id], reason="no"),
                SignOff(memory_id=lesson.id, shown=desk.hashes[lesson.id]),
                Renew(memory_id=note.id, shown=desk.hashes[note.id]),
                Revise(memory_id=note.id, shown=desk.hashes[note.id], text="other words"),
                Retire(memory_id=note.id, shown=desk.hashes[note.id]),
                Settle(flag_id=note.event_id, resolution="dismissed"),
            ):
                with pytest.raises(PermissionDenied):
                    book.execute(caller, command)
        assert book.head().sequence == before
