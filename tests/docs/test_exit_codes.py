"""The exit codes of the README, and what a person is told beside them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Book, Caller
from store.commands import Remember

GUARD = 60
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(home: Path, command: Path) -> Run:
    """Runs `deskbook` in a home of its own."""

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(command), *words],
            env={"HOME": str(home)},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=GUARD,
            check=False,
        )

    return start


@pytest.fixture
def ledger(home: Path) -> Path:
    """A ledger with one note and one failed call in it; its root."""
    root = home / "ledgers"
    book = Book.open(root, "default")
    caller = Caller("trader", "trader", "ses_1", "remember")
    book.execute(caller, Remember(text="Rates were cut."))
    book.note_failed(caller, "close_thesis", "already_closed", "thesis_id", 3)
    book.close()
    return root


@pytest.mark.parametrize("words", [("log",), ("show", "mem_1"), ("verify",), ("rebuild",)])
def test_a_missing_ledger_is_exit_1_and_is_named_by_its_path(
    words: tuple[str, ...], run: Run, home: Path
) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert str(home / ".local/share/deskbook/default/memory.sqlite") in done.stderr
    assert done.stdout == ""


def test_status_of_a_ledger_that_is_not_there_yet_is_exit_0(run: Run) -> None:
    done = run("status")
    assert (done.returncode, done.stderr) == (0, "")
    assert "none yet; the first write makes it" in done.stdout


def test_an_id_that_is_not_there_is_exit_1(run: Run, ledger: Path) -> None:
    done = run("show", "mem_0000000000000", "--root", str(ledger))
    assert done.returncode == 1
    assert "mem_0000000000000" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "--agent", "bob"), "deskbook init"),
        (("serve", "--config", "absent.toml"), "absent.toml"),
        (("status", "--no-such-option"), "--no-such-option"),
        (("log", "--event", "memory.retreived"), 'did you mean "memory.retrieved"?'),
        (("log", "--kind", "dicision"), 'did you mean "decision"?'),
        (("log", "--since", "yesterday"), "--since"),
    ],
)
def test_wrong_usage_is_exit_2_and_names_what_is_wrong(
    words: tuple[str, ...], said: str, run: Run, ledger: Path
) -> None:
    done = run(*words, *(() if words[0] == "serve" else ("--root", str(ledger))))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_init_never_overwrites_without_force(run: Run, home: Path) -> None:
    assert run("init").returncode == 0
    (home / "desk.toml").write_text("# mine\n")
    done = run("init")
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (home / "desk.toml").read_text() == "# mine\n"
    assert run("init", "--force").returncode == 0
    assert "[agents.trader]" in (home / "desk.toml").read_text()


def test_the_log_says_why_a_call_failed_and_how_often(run: Run, ledger: Path) -> None:
    done = run("log", "--root", str(ledger))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith(
        "trader  call.failed  close_thesis  -  already_closed, thesis_id, 3 times"
    )
