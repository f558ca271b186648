"""The deskbook command as processes: wrong starts, following a log, and commands beside a server that writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import PipedDesk, StartDesk

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environ() -> dict[str, str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }
    return own | {"PYTHONPATH": str(REPOSITORY)}


@pytest.fixture
def deskbook(tmp_path: Path, environ: dict[str, str]) -> Command:
    """Run a command to its end, its standard input empty, from the root folder."""

    def run(*words: str, on_root: bool = True) -> subprocess.CompletedProcess[str]:
        at = ("--root", str(tmp_path / "root")) if on_root else ()
        return subprocess.run(
            [sys.executable, "-m", "server", *words, *at], capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, cwd="/", env=environ, timeout=GUARD,
        )  # fmt: skip

    return run


@pytest.fixture
def follow(tmp_path: Path, environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A `log --follow --json` on the test's ledger, which must exist."""
    words = ("log", "--follow", "--json", "--event", "memory.recorded", "--root", str(tmp_path / "root"))
    with subprocess.Popen(
        [sys.executable, "-m", "server", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd="/", env=environ,
    ) as process:  # fmt: skip
        yield process
        process.kill()


@pytest.fixture
def writer(start_serve: StartDesk) -> PipedDesk:
    """A server that has written one note and goes on."""
    desk = start_serve()
    desk.open("modern")
    write(desk, "first")
    return desk


def write(desk: PipedDesk, text: str) -> dict[str, Any]:
    desk.send(desk.tool("modern", text, "remember", text=text))
    return dict(desk.reply(text)["result"]["structuredContent"])


CONFIG = '[agents.trader]\nprofile = "trader"\n[agents.researcher]\nprofile = "researcher"\n'


@pytest.mark.parametrize(
    ("config", "words", "says"),
    [
        (CONFIG, ["--agent", "tradr"], ["trader", "did you mean"]),
        (CONFIG, [], ["several agents", "--agent"]),
        (CONFIG, ["--agent", "trader", "--log-level", "loud"], ["log"]),
        (CONFIG, ["--agent", "trader", "--transport", "carrier-pigeon"], ["carrier-pigeon"]),
        (CONFIG, ["--agent", "trader", "--run", "r"], ["--run", "live"]),
        (CONFIG + "[stroe]\n", ["--agent", "trader"], ["stroe", "store"]),
        ("[agents.trader\n", ["--agent", "trader"], ["line 1"]),
        ('[agents.a]\nprofile = "king"\n', ["--agent", "a"], ["king", "no profile"]),
        (None, ["--agent", "trader"], ["local"]),
    ],
)
def test_a_wrong_start_exits_2_with_a_clear_message_and_nothing_on_stdout(
    deskbook: Command, tmp_path: Path, config: str | None, words: list[str], says: list[str]
) -> None:
    path = tmp_path / "desk.toml"
    if config is not None:
        path.write_text(config)
    ran = deskbook("serve", *(["--config", str(path)] if config is not None else []), *words)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    for word in says:
        assert word in ran.stderr
    assert not (tmp_path / "root").exists()


def test_a_config_that_is_not_there_is_named_with_its_path(deskbook: Command, tmp_path: Path) -> None:
    ran = deskbook("serve", "--config", str(tmp_path / "none.toml"), "--agent", "trader")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert str(tmp_path / "none.toml") in ran.stderr


def test_serving_nobody_ends_well_at_once_and_leaves_nothing(deskbook: Command, tmp_path: Path) -> None:
    ran = deskbook("serve")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert not (tmp_path / "root").exists()


def test_a_followed_log_prints_entries_as_they_arrive_and_ends_well_when_interrupted(
    writer: PipedDesk, follow: subprocess.Popen[str]
) -> None:
    assert follow.stdout is not None
    seen = [json.loads(follow.stdout.readline())["content"]["text"]]
    for number in range(3):
        write(writer, f"more {number}")
        seen.append(json.loads(follow.stdout.readline())["content"]["text"])
    assert seen == ["first", "more 0", "more 1", "more 2"]
    follow.send_signal(signal.SIGINT)
    assert follow.wait(GUARD) == 0
    assert follow.stderr is not None
    assert follow.stderr.read() == ""


def test_a_log_whose_reader_has_gone_ends_without_a_traceback(
    writer: PipedDesk, tmp_path: Path, environ: dict[str, str]
) -> None:
    for number in range(300):
        write(writer, f"line {number} " + "x" * 500)
    command = [
        sys.executable,
        "-m",
        "server",
        "log",
        "--json",
        "--limit",
        "1000",
        "--root",
        str(tmp_path / "root"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", env=environ
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


def test_every_reading_command_works_while_a_server_writes(
    writer: PipedDesk, deskbook: Command, tmp_path: Path
) -> None:
    note = write(writer, "second")
    frames = [writer.tool("modern", f"burst{n}", "remember", text=f"burst {n}") for n in range(400)]
    writer.send(*frames)
    for words in (["status"], ["log"], ["show", note["id"]], ["verify"], ["rebuild"], ["verify"]):
        ran = deskbook(*words)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        assert ran.stderr == ""
    for n in range(400):
        assert writer.reply(f"burst{n}")["result"]["isError"] is False
    write(writer, "after the rebuild")
    (told,) = [json.loads(line) for line in deskbook("status", "--json").stdout.splitlines()]
    assert told["memories"] == 403
    assert deskbook("verify").returncode == 0


def test_a_run_of_a_strategy_is_read_by_name(
    start_serve: StartDesk, deskbook: Command, tmp_path: Path
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text('[clock]\nmode = "simulated"\nrun = "run a"\n[agents.t]\nprofile = "trader"\n')
    desk = start_serve(
        "--config", str(config), DESKBOOK_NOW="2026-03-02T21:00:00Z", DESKBOOK_SESSION="process-1"
    )
    desk.open("handshake")
    desk.send(desk.tool("handshake", 1, "remember", text="in the run"))
    assert desk.reply(1)["result"]["isError"] is False
    ran = deskbook("log", "--json", "--run", "run a")
    last = json.loads(ran.stdout.splitlines()[-1])
    assert (last["run_id"], last["effective_at"], last["session_id"]) == (
        "run a",
        "2026-03-02T21:00:00Z",
        "process-1",
    )
    assert deskbook("verify", "--run", "run a").returncode == 0
    assert deskbook("log").returncode == 1
