"""The README's walk: an agent proposes, a person approves, the next session recalls it, later it is due."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from server.settings import load_settings
from store.errors import ConfigError

pytestmark = pytest.mark.anyio
GUARD = 60
PHRASE = "a phrase that no agent knows"
LESSON = "Half size before earnings: the gap went against us three times."
HALF_A_YEAR = timedelta(weeks=26)
Walk = Callable[..., str]


def commands_of(readme: Any) -> list[str]:
    """The commands that the section shows, without what is said beside them."""
    section = readme.text.split("## People in the loop\n")[1].split("\n## ")[0]
    return [re.split(r"  +", line)[0] for line in section.splitlines() if line.startswith("deskbook ")]


def in_a_terminal(command: list[str], environ: dict[str, str]) -> str:
    """Run a command in a terminal of its own, typing the passphrase when asked; gives what it showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd="/", env=environ)
    os.close(slave)
    shown, answered = "", 0
    while True:
        ready, _, _ = select.select([master], [], [], GUARD)
        assert ready, shown
        try:
            shown += os.read(master, 65_536).decode()
        except OSError:  # how a terminal says that nobody is on the other end
            break
        asked = len(re.findall(r"(?:passphrase|again)[^\n]*: ", shown, re.IGNORECASE))
        if asked > answered:
            answered = asked
            os.write(master, f"{PHRASE}\n".encode())
    os.close(master)
    assert process.wait(GUARD) == 0, shown
    return shown


@pytest.fixture
def walk(home: Path, command: Path, readme: Any) -> Walk:
    """Runs the README's command that begins with some words, on the config of the section."""
    config = next(block for block in readme.blocks("toml") if "[approval]" in block)
    (home / "desk.toml").write_text(config, encoding="utf-8")

    def run(begins: str, *more: str, **filled: str) -> str:
        (line,) = [each for each in commands_of(readme) if each.startswith(begins)]
        for name, value in filled.items():
            assert name in line
            line = line.replace(name, value)
        words = [str(home / "desk.toml") if word == "~/desk.toml" else word for word in line.split()]
        environ = {"HOME": str(home), "TERM": "dumb", "COLUMNS": "200", "DESKBOOK_EMBEDDING": "none"}
        return in_a_terminal([str(command), *words[1:], *more], environ)

    return run


def session(home: Path, command: Path, meta: dict[str, str] | None = None) -> Any:
    """A new session of the researcher: calls a tool and gives the body of its reply."""

    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        words = ["serve", "--config", str(home / "desk.toml"), "--agent", "researcher"]
        environ = {"HOME": str(home), "DESKBOOK_EMBEDDING": "none"}
        parameters = StdioServerParameters(command=str(command), args=words, env=environ, cwd="/")
        with anyio.fail_after(GUARD):
            async with Client(parameters) as client:
                result = await client.call_tool(name, arguments, meta=meta)  # type: ignore[arg-type]
        assert not result.is_error, result.content
        return dict(result.structured_content or {})

    return call


def hash_in(shown: str) -> str:
    found = re.search(r"\b[0-9a-f]{12}\b", shown)
    assert found, shown
    return found[0]


async def test_an_agent_proposes_a_person_approves_and_half_a_year_later_it_is_due(
    walk: Walk, home: Path, command: Path
) -> None:
    proposed = await session(home, command)("remember_lesson", text=LESSON)
    assert proposed["review_state"] == "pending"
    assert (await session(home, command)("search_memory", query="earnings"))["hits"] == []
    walk("deskbook reviewer add")
    assert proposed["id"] in walk("deskbook review list")
    shown = walk("deskbook review show", ID=proposed["id"])
    assert LESSON in " ".join(shown.split())
    walk("deskbook review approve", ID=proposed["id"], HASH=hash_in(shown))
    (hit,) = (await session(home, command)("search_memory", query="earnings"))["hits"]
    assert (hit["id"], hit["trust"]) == (proposed["id"], "approved")
    later = datetime.now(UTC) + HALF_A_YEAR + timedelta(days=1)
    assert proposed["id"] in walk("deskbook review due", DATE=later.isoformat())
    soon = datetime.now(UTC) + timedelta(days=100)
    assert proposed["id"] not in walk("deskbook review due", DATE=soon.isoformat())
    again = hash_in(walk("deskbook review show", ID=proposed["id"]))
    assert "holds until" in walk("deskbook review renew", ID=proposed["id"], HASH=again)


def test_what_the_section_changes_stands_in_the_file_that_init_writes(
    home: Path, command: Path, readme: Any
) -> None:
    """Each line has its place in a section that is there; pasted behind the file it is refused with what to do."""
    path = home / "desk.toml"
    environ = {"HOME": str(home), "DESKBOOK_EMBEDDING": "none"}
    subprocess.run(
        [str(command), "init", "--config", str(path)], check=True, env=environ, timeout=GUARD, cwd="/"
    )
    written = path.read_text(encoding="utf-8")
    block = next(block for block in readme.blocks("toml") if "[approval]" in block)
    changed = written
    for section, keys in tomllib.loads(block).items():
        for key, value in ((key, value) for key, value in keys.items() if section != "agents"):
            head, found, tail = changed.partition(f"\n[{section}]\n")
            assert found
            tail, count = re.subn(rf"^# {key} = .*$", f'{key} = "{value}"', tail, count=1, flags=re.MULTILINE)
            assert count == 1
            changed = head + found + tail
    path.write_text(changed, encoding="utf-8")
    settings = load_settings(config=path, flags={}, environ={})
    assert settings.approval.lesson == "review"
    assert settings.review.ages == {"lesson": HALF_A_YEAR // timedelta(microseconds=1)}
    path.write_text(f"{written}\n{block}", encoding="utf-8")
    with pytest.raises(ConfigError, match="twice") as refused:
        load_settings(config=path, flags={}, environ={})
    assert "Merge the two" in str(refused.value.hint)


async def test_in_a_run_half_a_year_of_its_own_clock_brings_it_up(
    walk: Walk, home: Path, command: Path
) -> None:
    """Six months, simulated: the same walk in a run, whose time is its calls'."""
    config = home / "desk.toml"
    clock = 'profile = "researcher"\nclock = { mode = "simulated", run = "walk" }'
    config.write_text(config.read_text().replace('profile = "researcher"', clock), encoding="utf-8")
    start = datetime(2026, 3, 2, 21, tzinfo=UTC)

    def at(when: datetime) -> Any:
        return session(home, command, {"deskbook/now": when.isoformat()})

    proposed = await at(start)("remember_lesson", text=LESSON)
    walk("deskbook reviewer add")
    of_run = ("--run", "walk")
    shown = walk("deskbook review show", *of_run, ID=proposed["id"])
    walk("deskbook review approve", *of_run, ID=proposed["id"], HASH=hash_in(shown))
    day = timedelta(days=1)
    (hit,) = (await at(start + day)("search_memory", query="earnings"))["hits"]
    assert (hit["id"], hit["trust"]) == (proposed["id"], "approved")
    before = await at(start + HALF_A_YEAR - day)("get_memory_state")
    assert before["reviews_due"] == []
    (due,) = (await at(start + HALF_A_YEAR)("get_memory_state"))["reviews_due"]
    assert due["memory_id"] == proposed["id"]
    (hit,) = (await at(start + HALF_A_YEAR + 3 * day)("search_memory", query="earnings"))["hits"]
    assert (hit["stale"], hit["stale_for"]) == (True, "3d")
    listed = walk("deskbook review due", *of_run, DATE=(start + HALF_A_YEAR + 4 * day).isoformat())
    assert proposed["id"] in listed
    assert json.dumps(LESSON)[1:20] in listed
