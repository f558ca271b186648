"""What the lists cost a model: o200k tokens of name, description and input schema; annotations apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import bpe_openai
import pytest

from server.app import INSTRUCTIONS
from server.permissions import PROFILES
from server.tools import TOOLS

if TYPE_CHECKING:
    from conftest import OpenDesk

pytestmark = pytest.mark.anyio

PROFILE_BUDGET = {"researcher": 1_800, "reviewer": 1_800, "trader": 3_500, "solo": 3_500}
TOOL_BUDGET = {"search_memory": 400, "record_order_intent": 400}


def tokens(text: str) -> int:
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


RUN = 'clock = { mode = "simulated", run = "r" }\n'


async def costs(open_desk: OpenDesk, profile: str, clock: str = "") -> dict[str, int]:
    """The tokens of each tool that a profile is shown, by name."""
    desk = open_desk(f'[agents.a]\nprofile = "{profile}"\n{clock}', "a")
    async with desk.client() as client:
        tools = (await client.list_tools()).tools
    return {
        tool.name: tokens(
            json.dumps(
                {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema},
                separators=(",", ":"),
                ensure_ascii=False,
            )
        )
        for tool in tools
    }


async def test_each_profiles_list_is_within_its_budget(open_desk: OpenDesk) -> None:
    table = []
    for profile in PROFILES:
        each = await costs(open_desk, profile)
        table.append(f"{profile:<12} {len(each):>3} tools {sum(each.values()):>6} tokens")
        assert sum(each.values()) <= PROFILE_BUDGET.get(profile, 1_800), profile
    print("\n" + "\n".join(table))  # noqa: T201 - the table is what one runs this for with -s


async def test_a_harness_in_a_run_is_shown_the_clock_within_the_same_budget(open_desk: OpenDesk) -> None:
    live, run = await costs(open_desk, "harness"), await costs(open_desk, "harness", RUN)
    assert run.keys() - live.keys() == {"advance_clock"}
    assert sum(run.values()) <= 1_800


async def test_each_tool_is_within_its_budget(open_desk: OpenDesk) -> None:
    each = await costs(open_desk, "harness", RUN) | await costs(open_desk, "solo")
    assert each.keys() == TOOLS.keys()
    print("\n" + "\n".join(f"{name:<20} {count:>4}" for name, count in each.items()))  # noqa: T201
    assert {name: count for name, count in each.items() if count > TOOL_BUDGET.get(name, 300)} == {}


async def test_instructions_are_within_their_budget_and_those_of_every_server(
    open_desk: OpenDesk,
) -> None:
    assert tokens(INSTRUCTIONS) <= 250
    for mode in ("legacy", "auto"):
        async with open_desk().client(mode) as client:
            assert client.instructions == INSTRUCTIONS
