"""Every profile on every transport in every era: what is listed can be called, the rest is refused and recorded.

Each column of the matrix, that is a case on one transport in one era, is an agent of its own, so that the ledger says
of every cell by itself whether it was refused. One server process serves all of HTTP and SSE; stdio has one for each
agent, on the same root.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from server.permissions import PROFILES
from server.tokens import new_token, token_path
from server.tools import TOOLS
from store import Book
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import HttpDesk

    from store.entry import Entry

pytestmark = pytest.mark.slow

TABLE = runpy.run_path(str(Path(__file__).parents[1] / "fixtures" / "permission_matrix.py"))
CUSTOM, VALID, RESOURCES, PROMPTS = (TABLE[name] for name in ("CUSTOM", "VALID", "RESOURCES", "PROMPTS"))
PROTOCOLS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
TRANSPORTS = ("stdio", "http", "sse")
BY_TOKEN = "trader, read-only token"
SIMULATED = "harness, simulated"
CASES = (*PROFILES, "from_nothing", "no_state", "trader, read-only agent", SIMULATED, BY_TOKEN)
EXPECTED: dict[str, tuple[set[str], set[str], set[str]]] = {
    **TABLE["EXPECTED"],
    BY_TOKEN: TABLE["EXPECTED"]["trader, read-only agent"],
    SIMULATED: (TABLE["EXPECTED"]["harness"][0] | {"advance_clock"}, RESOURCES, set()),
}
ARGUMENT = {"decision_journal": "symbol", "review_open_thesis": "thesis_id"}
SURFACES = (*TOOLS, *sorted(RESOURCES), *PROMPTS)
NOW = "2026-03-02T14:30:00Z"
SERVED = "served"
DENIED = "permission_denied"
GUARD = 300.0


class Column(NamedTuple):
    """A case on one transport in one era; `agent` is who walks it."""

    case: str
    transport: str
    era: str

    @property
    def agent(self) -> str:
        return "-".join((*self.case.replace(",", "").split(), self.transport, self.era))

    @property
    def run(self) -> str | None:
        return self.agent if self.case == SIMULATED else None


# A token is what tells a request over HTTP apart; over stdio there is none that could narrow anything.
COLUMNS = tuple(
    Column(case, transport, era)
    for case in CASES
    for transport in TRANSPORTS
    for era in PROTOCOLS
    if case != BY_TOKEN or transport != "stdio"
)


@dataclass
class Walked:
    """What came of the walk: what each column listed, and what each cell answered."""

    listed: dict[Column, set[str]] = field(default_factory=dict)
    protocol: dict[Column, str] = field(default_factory=dict)
    answers: dict[tuple[Column, str], str] = field(default_factory=dict)
    refusals: dict[tuple[Column, str], dict[str, Any]] = field(default_factory=dict)
    entries: dict[str | None, list[Entry]] = field(default_factory=dict)

    def note(self, column: Column, surface: str, told: dict[str, Any] | None) -> None:
        """Keep what a cell answered: None where it was served, else the described error."""
        self.answers[column, surface] = SERVED if told is None else told["code"]
        if told is not None and told["code"] == DENIED:
            self.refusals[column, surface] = told

    def recorded(self, column: Column, event_type: str) -> list[Entry]:
        """The entries of a type that the column's agent left."""
        found = self.entries[column.run]
        return [entry for entry in found if (entry.agent, entry.event_type) == (column.agent, event_type)]


def config_of(column: Column) -> str:
    profile, _, way = column.case.partition(", ")
    lines = [f"[agents.{column.agent}]", f'profile = "{profile}"']
    if way == "read-only agent":
        lines.append("read_only = true")
    if column.run is not None:
        lines.append(f'clock = {{ mode = "simulated", run = "{column.run}" }}')
    return "\n".join(lines) + "\n"


CONFIG = (
    "[limits]\ncalls_per_minute = 1_000_000\n" + CUSTOM + "".join(config_of(column) for column in COLUMNS)
)


async def walk_column(client: Client, column: Column, walked: Walked) -> None:
    """List everything, then try everything, what is not listed too."""
    walked.protocol[column] = client.protocol_version
    listed = {tool.name for tool in (await client.list_tools()).tools}
    listed |= {str(resource.uri) for resource in (await client.list_resources()).resources}
    templates = (await client.list_resource_templates()).resource_templates
    listed |= {str(template.uri_template) for template in templates}
    listed |= {prompt.name for prompt in (await client.list_prompts()).prompts}
    walked.listed[column] = listed
    for tool in TOOLS:
        result = await client.call_tool(tool, VALID.get(tool, {}))
        walked.note(column, tool, json.loads(result.content[0].text) if result.is_error else None)  # type: ignore[union-attr]
    for template in RESOURCES:
        ask = partial(client.read_resource, template.replace("{id}", "mem_0"))
        walked.note(column, template, await protocol_error(ask))
    for prompt, argument in ARGUMENT.items():
        ask = partial(client.get_prompt, prompt, {argument: "x"})
        walked.note(column, prompt, await protocol_error(ask))


async def protocol_error(ask: Callable[[], Awaitable[Any]]) -> dict[str, Any] | None:
    """The described error that rides in a protocol error, None where there was none."""
    try:
        await ask()
    except MCPError as fault:
        return dict(fault.error.data)
    return None


def client_of(column: Column, desk: HttpDesk, secret: str) -> Client:
    if column.transport != "stdio":
        headers = {"Authorization": f"Bearer {secret}"} | ({"Deskbook-Now": NOW} if column.run else {})
        return desk.client(None, column.transport, column.era, **headers)
    place = ["--root", str(desk.root), "--config", str(desk.config), "--agent", column.agent]
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)} | ({"DESKBOOK_NOW": NOW} if column.run else {})
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "server", "serve", *place], env=environ, cwd="/"
    )
    return Client(command, mode="legacy" if column.era == "legacy" else PROTOCOLS[column.era])


async def walk_all(desk: HttpDesk, secrets: dict[Column, str]) -> Walked:
    walked = Walked()
    at_once = anyio.CapacityLimiter(4)

    async def walk(column: Column) -> None:
        async with at_once, client_of(column, desk, secrets[column]) as client:
            await walk_column(client, column, walked)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tasks:
            for column in COLUMNS:
                tasks.start_soon(walk, column)
    return walked


def read_entries(root: Path, run: str | None) -> list[Entry]:
    book = Book.open(root, "default", run, create=False)
    try:
        return book.log(EntryFilter(limit=1_000_000))
    finally:
        book.close()


@pytest.fixture(scope="module")
def walked(
    tmp_path_factory: pytest.TempPathFactory, start_for_module: Callable[[Path, str], HttpDesk]
) -> Walked:
    """The whole matrix, walked once."""
    folder = tmp_path_factory.mktemp("matrix")
    secrets = {
        column: new_token(token_path(folder / "root"), column.agent, read_only=column.case == BY_TOKEN).token
        for column in COLUMNS
    }
    desk = start_for_module(folder, CONFIG)
    found = anyio.run(walk_all, desk, secrets)
    assert desk.stop() == 0
    found.entries = {run: read_entries(desk.root, run) for run in {column.run for column in COLUMNS}}
    return found


def test_the_matrix_was_walked_cell_by_cell(walked: Walked) -> None:
    assert set(CASES) >= set(PROFILES)
    assert set(SURFACES) == set(TOOLS) | RESOURCES | set(PROMPTS)
    assert len(SURFACES) == 19 + 3 + 2
    assert len(COLUMNS) == 10 * 3 * 2 + 1 * 2 * 2  # a token is nothing on stdio
    assert walked.answers.keys() == {(column, surface) for column in COLUMNS for surface in SURFACES}
    assert len(walked.answers) == len(COLUMNS) * len(SURFACES) == 1_536
    assert {walked.protocol[column] == PROTOCOLS[column.era] for column in COLUMNS} == {True}


@pytest.mark.parametrize("case", CASES)
def test_what_is_listed_is_what_can_be_called_and_nothing_else(walked: Walked, case: str) -> None:
    open_to_it = set().union(*EXPECTED[case])
    for column in (column for column in COLUMNS if column.case == case):
        assert walked.listed[column] == open_to_it, column
        usable = {surface for surface in SURFACES if walked.answers[column, surface] != DENIED}
        assert usable == open_to_it, column


def test_what_can_be_called_is_served_or_told_what_is_wrong_with_the_call(walked: Walked) -> None:
    assert set(walked.answers.values()) == {SERVED, DENIED, "not_found", "invalid_input"}
    for column in COLUMNS:
        for surface in ("remember", "search_memory", "get_memory_state", "memory://state", *PROMPTS):
            assert walked.answers[column, surface] in (SERVED, DENIED), (column, surface)


def test_every_refusal_says_that_nothing_was_stored_and_names_what_was_refused(walked: Walked) -> None:
    assert walked.refusals
    for (column, surface), told in walked.refusals.items():
        assert (told["stored"], told["retryable"]) == ("no", False)
        assert surface in told["message"]
        assert column.agent in told["message"]


@pytest.mark.parametrize("case", CASES)
def test_every_refused_cell_is_one_entry_and_no_other_is(walked: Walked, case: str) -> None:
    for column in (column for column in COLUMNS if column.case == case):
        entries = walked.recorded(column, "permission.denied")
        told = [json.loads(entry.content) for entry in entries]
        refused = {surface for surface in SURFACES if walked.answers[column, surface] == DENIED}
        assert sorted(each["tool"] for each in told) == sorted(refused), column
        assert {each["count"] for each in told} <= {1}
        assert {entry.profile for entry in entries} <= {case.partition(", ")[0]}


def test_every_column_went_its_own_way_and_wrote_under_its_own_name_alone(walked: Walked) -> None:
    for column in COLUMNS:
        (started,) = walked.recorded(column, "session.started")
        told = json.loads(started.content)
        assert (told["transport"], told["protocol_version"]) == (column.transport, PROTOCOLS[column.era])
        sessions = {entry.session_id for entry in walked.entries[column.run] if entry.agent == column.agent}
        assert sessions == {started.session_id}
        noted = [column.agent] if walked.answers[column, "remember"] == SERVED else []
        assert [entry.agent for entry in walked.recorded(column, "memory.recorded")] == noted
    started = [entry for found in walked.entries.values() for entry in found if entry.session_id]
    assert len({entry.session_id for entry in started}) == len(COLUMNS)
