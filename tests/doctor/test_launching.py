"""A server started as a host would: what it is given, and each way in which it does not come up."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.doctor.findings import Finding
from server.doctor.launching import bare_environment, check_command, check_launch

if TYPE_CHECKING:
    from conftest import Words

REPOSITORY = Path(__file__).resolve().parents[2]
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "1"},
}


def program(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{text}\n")
    path.chmod(0o755)
    return [str(path)]


def launched(tmp_path: Path, text: str, guard: float = 20.0) -> list[Finding]:
    return list(check_launch("test", program(tmp_path, text), {"PATH": os.defpath}, guard))


def answering(*results: object) -> str:
    """A program that answers its requests with these results, one after another, and ignores notes."""
    return (
        f"answers = {[json.dumps(result) for result in results]!r}\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        "        answer = json.loads(answers.pop(0))\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answer}), flush=True)\n"
    )


def test_the_server_is_given_a_bare_environment_and_a_foreign_folder(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    look = f"open({str(told)!r}, 'w').write(json.dumps([dict(os.environ), os.getcwd()]))\n"
    server = "os.execv(sys.executable, [sys.executable, '-P', '-m', 'server', 'serve'])"
    given = bare_environment({"HOME": str(tmp_path), "DESKBOOK_AGENT": "nobody", "LANG": "C"})
    assert given == {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    given |= {"PYTHONPATH": str(REPOSITORY)}
    found = list(check_launch("local", program(tmp_path, look + server), given))
    assert [(finding.name, finding.mark) for finding in found] == [
        ("start local", "ok"),
        ("sees local", "ok"),
    ]
    environ, folder = json.loads(told.read_text())
    environ.pop("LC_CTYPE", None)  # Python's own
    assert (environ, folder) == (given, "/")
    assert list((tmp_path / ".local").glob("**/*")) == [] if (tmp_path / ".local").exists() else True


def test_a_server_that_ends_is_shown_with_its_last_words(tmp_path: Path) -> None:
    (finding,) = launched(tmp_path, "print('because of \\x1b[31mred', file=sys.stderr); sys.exit(3)")
    assert finding.mark == "FAIL"
    assert "ended with code 3" in finding.found
    assert finding.lines == ("because of \x1b[31mred",)


def test_an_interpreter_without_the_package_is_explained(tmp_path: Path) -> None:
    (finding,) = launched(tmp_path, "import no_such_package_of_ours")
    assert "ModuleNotFoundError" in finding.lines[-1]
    assert "install Deskbook" in str(finding.next)


def test_a_server_that_says_nothing_is_given_up_after_the_guard(tmp_path: Path) -> None:
    (finding,) = launched(tmp_path, "sys.stdin.read()", guard=0.5)
    assert finding.mark == "FAIL"
    assert "no answer within 0.5 s" in finding.found


def test_a_server_that_does_not_end_is_killed_and_named(tmp_path: Path) -> None:
    tools = {"result": {"tools": [{"name": "remember"}]}}
    text = answering({"result": GREETING}, tools) + "while True: time.sleep(1)"
    found = launched(tmp_path, text, guard=2.0)
    assert [finding.mark for finding in found] == ["ok", "ok", "warn"]
    assert "did not end" in found[-1].found


def test_output_that_is_no_protocol_is_shown(tmp_path: Path) -> None:
    (finding,) = launched(tmp_path, "print('Welcome!', flush=True); sys.stdin.read()")
    assert finding.mark == "FAIL"
    assert finding.lines == ("Welcome!",)


@pytest.mark.parametrize(
    ("answers", "check", "said"),
    [
        ([{"error": {"code": -32602, "message": "no such version"}}], "start test", "no such version"),
        ([{"result": {}}], "start test", "none of MCP"),
        ([{"result": GREETING}, {"result": {"tools": []}}], "sees test", "no tools"),
        ([{"result": GREETING}, {"error": {"code": -1, "message": "not now"}}], "sees test", "not now"),
    ],
)
def test_a_server_that_answers_wrongly_is_explained(
    tmp_path: Path, answers: list[object], check: str, said: str
) -> None:
    found = launched(tmp_path, answering(*answers))
    (fault,) = [finding for finding in found if finding.mark == "FAIL"]
    assert fault.name == check
    assert said in fault.found


def test_a_protocol_that_is_not_known_is_a_warning_and_all_pages_are_read(tmp_path: Path) -> None:
    newer = {"result": {**GREETING, "protocolVersion": "2099-01-01"}}
    first = {"result": {"tools": [{"name": "one"}], "nextCursor": "2"}}
    found = launched(tmp_path, answering(newer, first, {"result": {"tools": [{"name": "two"}]}}))
    assert [finding.mark for finding in found] == ["ok", "warn", "ok"]
    assert "2099-01-01" in found[1].found
    assert found[2].found == "2 tools: one, two"


def test_what_a_server_says_cannot_drive_the_terminal(deskbook: Words, desk: Path, tmp_path: Path) -> None:
    words = program(tmp_path, "print('\\x1b]0;owned\\x07', file=sys.stderr); sys.exit('\\x9b31m')")
    entry = {
        "mcpServers": {
            "deskbook": {"command": words[0], "args": ["serve", "--config", str(desk), "--agent", "trader"]}
        }
    }
    file = tmp_path / "host.json"
    file.write_text(json.dumps(entry))
    for form in ((), ("--json",)):
        done = deskbook("doctor", "cursor", "--file", str(file), *form)
        assert done.returncode == 1
        assert "owned" in done.stdout
        assert not {"\x1b", "\x07", "\x9b"} & set(done.stdout)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("relative", "no absolute path"), ("absent", "there is no command"), ("closed", "not executable")],
)
def test_a_command_that_a_host_cannot_run_is_explained(tmp_path: Path, kind: str, said: str) -> None:
    path = tmp_path / "deskbook"
    if kind == "closed":
        path.write_text("")
        path.chmod(0o644)
    (finding,) = check_command("command", "deskbook" if kind == "relative" else str(path))
    assert finding.mark == "FAIL"
    assert said in finding.found
    assert "deskbook install" in str(finding.next)


def test_a_script_whose_interpreter_was_moved_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "deskbook"
    path.write_text("#!/no/such/venv/bin/python\n")
    path.chmod(0o755)
    assert list(check_command("command", str(path))) == []
    (finding,) = check_launch("test", [str(path)], {})
    assert "interpreter in the first line" in finding.found
