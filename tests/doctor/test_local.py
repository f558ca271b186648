"""Doctor on this machine: a desk in order, each thing that can be wrong with it, and nothing changed by looking."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from server.doctor.local import examine
from server.doctor.storing import check_disk, file_system
from server.doctor.subject import Subject
from server.identity import launch_identity
from server.settings import load_settings
from store import Book, Caller
from store.commands import Remember

if TYPE_CHECKING:
    from conftest import Doctor, Words

    from server.doctor.findings import Finding

SECRET = "Long AAPL before the report."
AGENTS = ("researcher", "trader")


def write_note(root: Path, strategy: str = "default") -> Path:
    book = Book.open(root, strategy)
    book.execute(Caller("trader", "trader", "ses_1", "remember"), Remember(text=SECRET))
    book.close()
    return root / strategy / "memory.sqlite"


def subject_of(config: Path, **more: Any) -> Subject:
    settings = load_settings(config=config, flags={}, environ={})
    return Subject(settings, tuple(launch_identity(settings, name) for name in settings.agents), {}, **more)


def of(found: list[Finding], check: str) -> Finding:
    (finding,) = [finding for finding in found if finding.name == check]
    return finding


def test_a_desk_in_order_has_no_fault_and_every_agent_is_started_and_listed(
    doctor: Doctor, desk: Path, root: Path
) -> None:
    write_note(root)
    told = doctor("--config", str(desk))
    assert told.code == 0
    assert {finding["mark"] for finding in told.findings if finding["check"] != "tokens"} == {"ok"}
    assert {tuple(finding) for finding in told.findings} == {("check", "mark", "found", "lines", "next")}
    for agent, count in zip(AGENTS, (9, 17), strict=True):
        (started,) = told.of(f"start {agent}")
        assert "protocol 2025-11-25" in started["found"]
        assert "environment HOME, PATH; folder /" in started["found"]
        (seen,) = told.of(f"sees {agent}")
        assert seen["found"].startswith(f"{count} tools: search_memory, ")
        assert "memory://state" in seen["found"]
    (ledger,) = told.of("ledger default")
    assert "3 entries" in ledger["found"]
    assert SECRET not in told.out


def test_a_person_reads_one_line_for_each_check_and_what_to_do_below_it(
    deskbook: Words, desk: Path, root: Path
) -> None:
    write_note(root)
    root.chmod(0o755)
    done = deskbook("doctor", "--config", str(desk), "--agent", "trader")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("warn  permissions: "))
    assert lines[at + 1] == f"        what to do: chmod 700 {root}"
    assert lines[-1].endswith("0 faults, 1 warning")
    assert all(line.startswith(("ok    ", "warn  ", "FAIL  ", "        ")) for line in lines[:-1])
    assert "start researcher" not in done.stdout


def test_without_a_config_the_one_persons_desk_is_looked_at(doctor: Doctor, home: Path) -> None:
    told = doctor()
    assert told.code == 0
    assert "--config" in told.of("config")[0]["found"]
    assert told.of("start local")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("standing", ["nothing", "at rest", "in use", "killed"])
def test_looking_changes_nothing_and_records_nothing(
    doctor: Doctor, desk: Path, root: Path, contents_of: Callable[[Path], Any], standing: str, tmp_path: Path
) -> None:
    open_book: Book | None = None
    if standing != "nothing":
        write_note(root)
        open_book = Book.open(root, "default")
        open_book.execute(Caller("trader", "trader", "ses_2", "remember"), Remember(text="again"))
        if standing == "killed":
            copied = {path.name: path.read_bytes() for path in (root / "default").iterdir()}
        if standing != "in use":
            open_book.close()
        if standing == "killed":
            for name in ("memory.sqlite", "memory.sqlite-wal"):
                (root / "default" / name).write_bytes(copied[name])
    before = contents_of(tmp_path)
    told = doctor("--config", str(desk), "--agent", "trader")
    assert told.code == 0, told.out
    assert contents_of(tmp_path) == before
    if open_book is not None:
        assert "5 entries" in told.of("ledger default")[0]["found"]
        open_book.close()
    else:
        assert "the first write makes it" in told.of("root")[0]["found"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "There is no config file"),
        ("[agents.trader\n", "not valid TOML"),
        ('[agents.trader]\nprofil = "trader"\n', 'did you mean "agents.trader.profile"'),
    ],
)
def test_a_config_that_cannot_be_read_is_explained(
    doctor: Doctor, tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "wrong.toml"
    if text is not None:
        path.write_text(text)
    told = doctor("--config", str(path))
    (fault,) = told.marked("fail")
    assert (told.code, fault["check"]) == (1, "config")
    assert said in fault["found"]
    if "TOML" in said:
        assert "at line 1" in fault["found"]
        assert fault["next"] is None, "what is wrong, and where, says all"
    else:
        assert fault["next"]


def test_an_agent_that_the_config_lacks_is_named_with_the_one_that_may_be_meant(
    doctor: Doctor, desk: Path
) -> None:
    told = doctor("--config", str(desk), "--agent", "tradr")
    fault = told.only_fault("agent")
    assert 'did you mean "trader"' in fault["found"]
    assert told.of("root")
    assert not told.of("start trader")


@pytest.mark.parametrize("place", ["the root", "the root's parent", "the ledger"])
def test_a_store_that_cannot_be_written_is_explained(
    doctor: Doctor, desk: Path, root: Path, powerless: tuple[str, ...], place: str, contents_of: Any
) -> None:
    sealed = root
    if place == "the root's parent":
        sealed = root / "below"
        desk.write_text(desk.read_text().replace(str(root), str(sealed / "further")))
        sealed.mkdir(parents=True)
    else:
        ledger = write_note(root)
        if place == "the ledger":
            sealed = ledger
    sealed.chmod(0o400 if place == "the ledger" else 0o500)
    before = contents_of(root)
    fault = doctor("--config", str(desk), "--agent", "trader", prefix=powerless).only_fault(
        "ledger default" if place == "the ledger" else "root"
    )
    assert contents_of(root) == before
    assert "read-only" in fault["found"] or "Permission denied" in fault["found"]
    assert "chmod" in fault["next"]
    assert "--root" in fault["next"]


def test_a_root_that_may_not_even_be_read_is_explained(
    doctor: Doctor, desk: Path, root: Path, powerless: tuple[str, ...]
) -> None:
    write_note(root)
    root.chmod(0)
    told = doctor("--config", str(desk), "--agent", "trader", prefix=powerless)
    root.chmod(0o700)
    assert told.code == 1
    wrong = {finding["check"] for finding in told.marked("fail")}
    assert wrong == {"root", "ledger default", "tokens", "reviewers"}
    assert all("Permission denied" in finding["found"] for finding in told.marked("fail"))


def test_a_file_in_the_roots_place_is_explained(doctor: Doctor, desk: Path, root: Path) -> None:
    root.write_text("not a folder")
    told = doctor("--config", str(desk), "--agent", "trader")
    assert "is no folder" in told.only_fault("root")["found"]
    assert "chmod" not in told.out
    assert not told.of("start trader"), "it would start, and fail at the first call"
    assert {finding["check"] for finding in told.findings} == {
        "config",
        "agent trader",
        "python",
        "sqlite",
        "root",
        "embedding",
    }


@pytest.mark.parametrize(("version", "mark"), [("3.51.2", "FAIL"), ("3.40.1", "FAIL"), ("3.51.3", "ok")])
def test_an_old_sqlite_is_explained(desk: Path, version: str, mark: str) -> None:
    finding = of(list(examine(subject_of(desk, sqlite=version))), "sqlite")
    assert finding.mark == mark
    assert version in finding.found
    if mark == "FAIL":
        assert "apsw" in str(finding.next)


@pytest.mark.parametrize(
    ("kind", "mark", "said"),
    [
        ("nfs4", "warn", "network"),
        ("9p", "warn", "network"),
        ("tmpfs", "warn", "restart"),
        ("ext4", "ok", "ext4"),
    ],
)
def test_a_disk_that_a_ledger_should_not_lie_on_is_named(
    desk: Path, root: Path, kind: str, mark: str, said: str
) -> None:
    root.mkdir()
    mounts = f"/dev/sda / ext4 rw 0 0\nserver:/desk {root} {kind} rw 0 0\n"
    finding = of(list(examine(subject_of(desk, mounts=lambda: mounts))), "disk")
    assert (finding.mark, said in finding.found) == (mark, True)


@pytest.mark.parametrize(
    ("folder", "mark"),
    [
        ("Dropbox", "warn"),
        ("Dropbox (Firm)", "warn"),
        ("OneDrive - Firm", "warn"),
        ("Library/Mobile Documents/x", "warn"),
        ("google drive", "warn"),
        ("omega", "ok"),
        ("megaphone", "ok"),
    ],
)
def test_a_root_in_a_folder_that_a_program_syncs_is_named(
    desk: Path, root: Path, tmp_path: Path, folder: str, mark: str
) -> None:
    """P026: by its name or by the folder that a link leads to."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / folder)
    words = desk.read_text(encoding="utf-8")
    for place in (tmp_path / folder / "desk", tmp_path / "link" / "desk"):
        desk.write_text(words.replace(str(root), str(place)), encoding="utf-8")
        finding = of(list(check_disk(subject_of(desk))), "disk")
        assert (finding.mark, "sync program" in finding.found) == (mark, mark == "warn")


def test_the_file_system_is_that_of_the_innermost_and_last_mount() -> None:
    mounts = (
        "rootfs / rootfs rw 0 0\n/dev/sda / ext4 rw 0 0\n"
        "x /mnt/my\\040desk nfs rw 0 0\nbad line\ny /mnt xfs rw 0 0\n"
    )
    assert file_system(Path("/mnt/my desk/root"), mounts) == "nfs"
    assert file_system(Path("/mnt/my"), mounts) == "xfs"
    assert file_system(Path("/home"), mounts) == "ext4"
    assert file_system(Path("/home"), "") is None


def test_folders_and_files_that_others_may_read_are_named_with_the_cure(desk: Path, root: Path) -> None:
    ledger = write_note(root)
    for path, mode in ((root, 0o755), (ledger.parent, 0o750), (ledger, 0o644)):
        path.chmod(mode)
    found = [finding for finding in examine(subject_of(desk)) if finding.name == "permissions"]
    assert {finding.mark for finding in found} == {"warn"}
    cures = {str(finding.next) for finding in found}
    assert cures == {f"chmod 700 {root}", f"chmod 700 {ledger.parent}", f"chmod 600 {ledger}"}
    for cure in cures:
        subprocess.run(cure.split(), check=True)
    assert of(list(examine(subject_of(desk))), "permissions").mark == "ok"


def damage(ledger: Path) -> None:
    with ledger.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(4096 * 4))


def make_newer(ledger: Path) -> None:
    connection = apsw.Connection(str(ledger))
    connection.pragma("user_version", 99)
    connection.close()


def swap(ledger: Path) -> None:
    other = write_note(ledger.parents[1], "other")
    ledger.write_bytes(other.read_bytes())


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (damage, "damaged"),
        (make_newer, "schema 99"),
        (swap, "another strategy"),
        (lambda ledger: ledger.write_bytes(b"hello, world" * 100), "not a database"),
    ],
)
def test_a_ledger_that_cannot_be_served_is_explained_and_left_alone(
    desk: Path, root: Path, harm: Callable[[Path], Any], said: str
) -> None:
    ledger = write_note(root)
    harm(ledger)
    before = ledger.read_bytes()
    finding = of(list(examine(subject_of(desk))), "ledger default")
    assert finding.mark == "FAIL"
    assert finding.next
    assert said in finding.found
    assert str(ledger) in finding.found
    assert ledger.read_bytes() == before


def test_an_older_schema_is_told_and_not_upgraded(
    desk: Path, root: Path, fixtures: Path, contents_of: Callable[[Path], Any]
) -> None:
    ledger = write_note(root)
    ledger.write_bytes(lzma.decompress((fixtures / "ledger_v2.sqlite.xz").read_bytes()))
    before = contents_of(root)
    finding = of(list(examine(subject_of(desk))), "ledger default")
    assert finding.mark == "ok", finding
    assert "schema 2, upgraded to 4 at the next start" in finding.found
    assert contents_of(root) == before


def test_variables_that_a_host_does_not_hand_on_are_named(doctor: Doctor, desk: Path, home: Path) -> None:
    own = {"DESKBOOK_CONFIG": str(desk), "DESKBOOK_TRADER_TOKEN": "not-a-setting"}
    told = doctor("--agent", "trader", **own, XDG_DATA_HOME=str(home / "elsewhere"))
    (shell,) = told.of("shell")
    assert shell["found"].startswith("DESKBOOK_CONFIG set in this shell")
    assert told.of("start trader")
    (shell,) = doctor(XDG_DATA_HOME=str(home / "elsewhere")).of("shell")
    assert "XDG_DATA_HOME" in shell["found"]


@pytest.mark.parametrize(
    "words",
    [
        ("--token-env", "TOKEN"),
        ("--name", "mine"),
        ("--url", "http://127.0.0.1:1/mcp?token=x"),
        ("--url", "http://127.0.0.1:1/mcp", "--agent", "trader"),
        ("--url", "ftp://127.0.0.1/mcp"),
        ("--url", "http://127.0.0.1:1/mcp", "--token-env", "dbk_a_token_itself"),
        ("claude-desktp",),
        ("cursor", "--config", "desk.toml"),
    ],
)
def test_wrong_usage_is_exit_2_and_looks_at_nothing(doctor: Doctor, words: tuple[str, ...]) -> None:
    told = doctor(*words)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("deskbook: ")
    assert "dbk_a_token_itself" not in told.err


def test_looking_at_this_machine_opens_no_connection(desk: Path, home: Path) -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from server.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor", "--config", str(desk)],
        env={"HOME": str(home), "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
