"""deskbook checkpoint: what it prints, where it keeps it, what it refuses, and how it goes on by itself."""

from __future__ import annotations

import base64
import http.server
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from store.proofs import signing
from store.proofs.checkpoint import open_checkpoint
from store.proofs.note import Signer, read_verifier

if TYPE_CHECKING:
    from conftest import Attacker, Run

More = Callable[..., None]
REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60


@pytest.fixture
def ready(run: Run, root: Path, more: More) -> Path:
    """A ledger of 12 entries and a key; the ledger."""
    more(root, 10)
    assert run("checkpoint", "--new-key").code == 0
    return root / "default" / "memory.sqlite"


def test_a_new_key_is_private_and_its_public_half_is_shown(run: Run, keys: Path) -> None:
    done = run("checkpoint", "--new-key", "--name", "desk.example/one")
    assert (done.code, done.err) == (0, "")
    secret = keys / "desk.example_one.key"
    public = secret.with_suffix(".pub").read_text().strip()
    assert done.out.splitlines()[0] == public
    assert read_verifier(public).name == "desk.example/one"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    line = secret.read_text().strip()
    assert line.startswith("PRIVATE+KEY+")
    # Its base64 may hold the sign that stands between its parts.
    assert line.split("+", 4)[4] not in done.out


def test_two_keys_never_share_a_public_file(run: Run, tmp_path: Path) -> None:
    assert run("checkpoint", "--new-key", "--key", tmp_path / "desk.one").code == 0
    done = run("checkpoint", "--new-key", "--key", tmp_path / "desk.other")
    assert (done.code, done.out) == (2, "")
    assert "desk.pub" in done.err
    assert not (tmp_path / "desk.other").exists()


def test_a_key_is_never_overwritten(run: Run, keys: Path) -> None:
    run("checkpoint", "--new-key")
    before = (keys / "deskbook.key").read_bytes()
    done = run("checkpoint", "--new-key")
    assert (done.code, done.out) == (2, "")
    assert (keys / "deskbook.key").read_bytes() == before


def test_without_a_key_nothing_is_signed_and_the_way_is_shown(run: Run, root: Path, more: More) -> None:
    more(root, 3)
    done = run("checkpoint")
    assert (done.code, done.out) == (2, "")
    assert "--new-key" in done.err


def test_the_note_alone_is_on_stdout_and_it_is_kept(
    run: Run, ready: Path, keys: Path, tmp_path: Path
) -> None:
    copies, file = tmp_path / "copies", tmp_path / "desk.note"
    done = run("checkpoint", "--to", copies, "--to", file)
    assert (done.code, done.err) == (0, "")
    known = [read_verifier((keys / "deskbook.pub").read_text())]
    signed = open_checkpoint(done.out.encode(), known)
    assert signed.checkpoint.size == 12
    store_id = signed.checkpoint.origin.removeprefix("deskbook/")
    for folder in (keys / "notes", copies):
        kept = {path.name: path.read_text() for path in (folder / store_id).iterdir() if path.name != ".lock"}
        assert kept == {"12.note": done.out, "latest": done.out}
    assert file.read_text() == done.out
    files = {path.name for path in ready.parent.iterdir()}
    beside = {f"memory.sqlite{end}" for end in ("", "-wal", "-shm", ".lock", ".turn")}
    assert files <= beside | {"tree.cache"}


def test_signing_writes_nothing_to_the_ledger(run: Run, ready: Path) -> None:
    with closing(apsw.Connection(str(ready))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = ready.read_bytes()
    run("checkpoint")
    assert ready.read_bytes() == before


def test_nothing_new_gives_the_same_note_again(run: Run, ready: Path, keys: Path) -> None:
    assert run("checkpoint").out == run("checkpoint").out
    assert len(list(keys.glob("notes/*/*.note"))) == 1


def test_growth_is_signed_and_every_note_stays(
    run: Run, ready: Path, root: Path, more: More, keys: Path
) -> None:
    run("checkpoint")
    more(root, 3)
    run("checkpoint")
    names = sorted(path.name for path in keys.glob("notes/*/*.note"))
    assert names == ["12.note", "15.note"]


def test_a_large_ledger_is_checked_from_the_last_note_on(
    run: Run, ready: Path, root: Path, more: More, attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("checkpoint")
    more(root, 20)
    monkeypatch.setattr(signing, "FULL_CHECK_ENTRIES", 14)
    whole = run("checkpoint", "--to", root.parent / "a.note")
    assert whole.code == 0
    more(root, 20)
    attacker.raw("UPDATE memory_events SET agent = 'eve' WHERE sequence = 5")
    assert run("checkpoint", "--full").code == 1
    assert run("checkpoint").code == 0  # entry 5 stands as it was signed; verify finds what was done to it
    assert run("verify", "--checkpoint", root.parent / "a.note").code == 1


def test_a_tampered_entry_after_the_last_note_is_never_signed(
    run: Run, ready: Path, root: Path, more: More, attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "FULL_CHECK_ENTRIES", 0)
    run("checkpoint")
    more(root, 5)
    attacker.raw("UPDATE memory_events SET agent = 'eve' WHERE sequence = 14")
    assert "Entry 14 is not sound" in run("checkpoint").err


@pytest.mark.parametrize("option", ["--to", "--key"])
@pytest.mark.parametrize("below", [".", "default", "default/x.note", "default/../x.note"])
def test_no_key_and_no_note_inside_the_store(
    run: Run, ready: Path, root: Path, option: str, below: str
) -> None:
    done = run("checkpoint", option, root / below)
    assert (done.code, done.out) == (2, "")
    assert "inside the store" in done.err


def test_a_link_into_the_store_is_inside_it(run: Run, ready: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert run("checkpoint", "--to", tmp_path / "link" / "x.note").code == 2
    assert run("checkpoint", "--new-key", "--key", tmp_path / "link" / "x.key").code == 2


def test_a_key_that_others_may_read_signs_nothing(run: Run, ready: Path, keys: Path) -> None:
    (keys / "deskbook.key").chmod(0o640)
    done = run("checkpoint")
    assert (done.code, done.out) == (1, "")
    assert "chmod 600" in done.err


def test_a_key_of_ones_own_place_keeps_its_notes_beside_it(run: Run, ready: Path, tmp_path: Path) -> None:
    key = tmp_path / "safe" / "desk.key"
    assert run("checkpoint", "--new-key", "--key", key, "--name", "desk").code == 0
    assert "— desk " in run("checkpoint", "--key", key).out
    assert [path.name for path in (tmp_path / "safe" / "notes").glob("*/*.note")] == ["12.note"]


def test_the_key_may_come_from_a_variable(
    run: Run, ready: Path, more: More, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text('[agents.a]\nprofile = "trader"\n[checkpoint]\nkey_env = "DESK_KEY"\n')
    done = run("checkpoint", "--config", config)
    assert (done.code, done.out) == (2, "")
    assert "DESK_KEY" in done.err
    signer = Signer("var", bytes(range(32)))
    for value, name in ((signer.secret(), "var"), (base64.b64encode(bytes(32)).decode(), "deskbook")):
        monkeypatch.setenv("DESK_KEY", value)
        done = run("checkpoint", "--config", config, "--to", tmp_path / f"{name}.note")
        assert (done.code, done.err) == (0, "")
        assert f"— {name} " in done.out
        more(ready.parent.parent, 1)
        assert value.rpartition("+")[2] not in done.out + done.err
    monkeypatch.setenv("DESK_KEY", "nonsense")
    done = run("checkpoint", "--config", config)
    assert done.code == 2
    assert "nonsense" not in done.err


def test_an_older_key_of_the_desk_stays_trusted(run: Run, ready: Path, root: Path, more: More) -> None:
    run("checkpoint")
    run("checkpoint", "--new-key", "--name", "next-year")
    more(root, 2)
    assert "— next-year " in run("checkpoint", "--name", "next-year").out


@pytest.mark.parametrize("size", [12, 14])
def test_a_note_in_the_history_that_nobody_here_signed_stops_the_signing(
    run: Run, ready: Path, root: Path, more: More, keys: Path, size: int
) -> None:
    run("checkpoint")
    (note,) = keys.glob("notes/*/12.note")
    text = note.read_text().replace("\n12\n", f"\n{size}\n")
    note.with_name(f"{size}.note").write_text(text[:-8] + "AAAAAA=\n")
    more(root, 4)
    done = run("checkpoint")
    assert (done.code, done.out) == (1, "")
    assert "cannot be trusted" in done.err


def test_a_file_that_is_no_note_is_not_overwritten(run: Run, ready: Path, tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("precious")
    assert run("checkpoint", "--to", precious).code == 1
    assert precious.read_text() == "precious"


def test_a_lost_history_is_made_up_for_by_the_other_place(
    run: Run, ready: Path, attacker: Attacker, keys: Path, tmp_path: Path
) -> None:
    run("checkpoint", "--to", tmp_path / "desk.note")
    (note,) = keys.glob("notes/*/12.note")
    note.unlink()
    attacker.say_otherwise(4)
    assert run("checkpoint", "--to", tmp_path / "desk.note").code == 1
    assert run("checkpoint").code == 0  # nothing is left that would know better


def test_a_copy_that_cannot_be_written_is_exit_1_and_the_note_is_kept(
    run: Run, ready: Path, keys: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    done = run("checkpoint", "--to", tmp_path / "file" / "notes")
    assert done.code == 1
    assert done.out.startswith("deskbook/store_")
    assert len(list(keys.glob("notes/*/12.note"))) == 1


@pytest.mark.parametrize("given", ["", "15", "m", "0m", "-1m", "1y", "1.5h", "99999999w"])
def test_an_interval_that_is_none_is_exit_2(run: Run, ready: Path, given: str) -> None:
    assert run("checkpoint", "--every", given).code == 2


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes notes, and answers as the test wants."""

    answer = 204
    taken: tuple[tuple[str, bytes], ...] = ()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).taken = (*self.taken, (self.headers["Content-Type"], body))
        self.send_response(self.answer)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def endpoint() -> Iterator[tuple[str, type[Collector]]]:
    kind = type("OneCollector", (Collector,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/secret-path", kind
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("answer", [204, 200, 302, 500])
def test_the_note_is_posted_to_the_endpoint(
    run: Run, ready: Path, tmp_path: Path, keys: Path, endpoint: tuple[str, type[Collector]], answer: int
) -> None:
    url, collector = endpoint
    collector.answer = answer
    config = tmp_path / "desk.toml"
    config.write_text(f'[agents.a]\nprofile = "trader"\n[checkpoint]\nendpoint = "{url}"\n')
    done = run("checkpoint", "--config", config)
    assert collector.taken == (("text/plain; charset=utf-8", done.out.encode()),)
    assert done.code == (0 if answer < 300 else 1)
    assert len(list(keys.glob("notes/*/12.note"))) == 1
    assert "secret-path" not in done.err
    if answer >= 300:
        assert f"answered {answer}" in done.err


def test_an_endpoint_that_is_not_there_is_exit_1(run: Run, ready: Path, tmp_path: Path, keys: Path) -> None:
    config = tmp_path / "desk.toml"
    config.write_text(
        '[agents.a]\nprofile = "trader"\n[checkpoint]\nendpoint = "http://127.0.0.1:1/secret-path"\n'
    )
    done = run("checkpoint", "--config", config)
    assert done.code == 1
    assert "did not take the note" in done.err
    assert "secret-path" not in done.err
    assert len(list(keys.glob("notes/*/12.note"))) == 1


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_on_a_schedule_only_what_is_new_is_signed_until_the_signal(
    ready: Path, root: Path, home: Path, more: More, keys: Path, ending: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "server", "checkpoint", "--every", "1s", "--root", str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
        env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(5)]
    assert first[1] == "12\n"
    more(root, 2)
    second = [process.stdout.readline() for _ in range(5)]
    assert second[1] == "14\n"
    process.send_signal(ending)
    rest, errors = process.communicate(timeout=GUARD)
    assert (process.returncode, rest, errors) == (0, "", "")
    assert sorted(path.name for path in keys.glob("notes/*/*.note")) == ["12.note", "14.note"]


def test_a_note_says_nothing_of_strategy_run_or_agent(run: Run, root: Path, more: More) -> None:
    more(root, 3, "momentum-alpha", "run-of-march")
    run("checkpoint", "--new-key")
    said = run("checkpoint", "--strategy", "momentum-alpha", "--run", "run-of-march")
    assert said.code == 0
    assert not any(word in said.out for word in ("momentum", "march", "ann"))
    assert json.dumps(said.out).isascii() or "—" in said.out


def test_commands_that_sign_at_once_leave_notes_that_agree(
    run: Run, ready: Path, root: Path, home: Path, more: More, keys: Path
) -> None:
    program = [
        sys.executable,
        "-m",
        "server",
        "checkpoint",
        "--root",
        str(root),
        "--to",
        str(home / "copies"),
    ]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    started = [subprocess.Popen(program, stdout=subprocess.PIPE, cwd="/", env=environ) for _ in range(3)]
    more(root, 30)
    printed = {process.communicate(timeout=GUARD)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    kept = {path.read_bytes(): path for path in keys.glob("notes/*/*.note")}
    assert kept.keys() == printed
    checks = [word for path in kept.values() for word in ("--checkpoint", path)]
    assert run("verify", *checks).code == 0
