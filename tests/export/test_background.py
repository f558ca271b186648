"""The exporter of a server: off the path of every call, told of when it fails, and gone within a second."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from server import exporting
from server.cli import app
from server.doctor.exports import check_exports as doctor_exports
from server.doctor.subject import Subject
from server.exporting import Exports
from store.export.checking import check_exports
from store.export.manifest import read_failure, read_manifest
from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

GUARD = 60.0

pytestmark = pytest.mark.anyio


class Watch:
    """Counts the passes of every exporter, and waits for the next one to be over."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []
        self._over = threading.Condition()

    def over(self, outcome: str, fault: str) -> None:
        with self._over:
            self.outcomes.append((outcome, fault))
            self._over.notify_all()

    def wait_for(self, outcome: str, count: int = 1) -> str:
        """What was wrong in the last of so many passes that ended so."""

        def ended() -> list[str]:
            return [fault for name, fault in self.outcomes if name == outcome]

        with self._over:
            assert self._over.wait_for(lambda: len(ended()) >= count, GUARD), self.outcomes
            return ended()[-1]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Passes that begin at once after a call."""
    watch = Watch()
    settle = Exports._settle

    def settled(self: Exports, key: Any, outcome: Any, fault: str, took: float) -> None:
        settle(self, key, outcome, fault, took)
        watch.over(outcome.name, fault)

    monkeypatch.setattr(Exports, "_settle", settled)
    monkeypatch.setattr(exporting, "FIRST_SECONDS", 0.0)
    return watch


def config(**export: Any) -> str:
    told = "\n".join(f"{name} = {json.dumps(value)}" for name, value in export.items())
    return f'[export]\n{told}\n[agents.local]\nprofile = "solo"\n'


async def test_a_write_is_exported_soon_and_every_ledger_has_its_own(
    open_desk: OpenDesk, watch: Watch
) -> None:
    desk = open_desk()
    async with desk.client() as client:
        await desk.call(client, "remember", text="one")
        watch.wait_for("MADE")
    desk.server.drain()
    path = ledger_path(desk.root, "default", None)
    assert check_exports(path) == []
    manifest = read_manifest(path.parent / "exports")
    assert manifest is not None
    assert manifest.head.sequence == 3
    assert desk.server.ailing() == []


async def test_after_a_pass_the_interval_goes_by(open_desk: OpenDesk, watch: Watch) -> None:
    desk = open_desk(config(interval_seconds=86_400))
    async with desk.client() as client:
        for number in range(20):
            await desk.call(client, "remember", text=f"note {number}")
            watch.wait_for("MADE")
    desk.server.drain()
    assert [outcome for outcome, _ in watch.outcomes if outcome == "MADE"] == ["MADE"]


async def test_switched_off_nothing_is_made(open_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """P214."""
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail(thread.name))
    desk = open_desk(config(enabled=False))
    desk.server._ledgers._exports.touched(("default", None))
    assert desk.settings.export.enabled is False
    monkeypatch.undo()
    async with desk.client() as client:
        await desk.call(client, "remember", text="one")
    desk.server.drain()
    assert not (desk.root / "default" / "exports").exists()
    (finding,) = doctor_exports(Subject(desk.settings, (desk.identity,), {}))
    assert "off" in finding.found


def status_of(desk: InMemoryDesk) -> Any:
    done = CliRunner().invoke(app, ["status", "--root", str(desk.root), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)["exports"]


async def test_what_keeps_exports_from_being_written_is_told_and_hurts_no_write(
    open_desk: OpenDesk, watch: Watch, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P214: writes succeed, there is one warning, status, doctor and /healthz say it, and it mends itself."""
    desk = open_desk(config(interval_seconds=1))
    (desk.root / "default").mkdir(parents=True, mode=0o700)
    wall = desk.root / "default" / "exports"
    wall.write_text("in the way")
    async with desk.client() as client:
        for number in range(3):
            await desk.call(client, "remember", text=f"note {number}")
        assert "Error" in watch.wait_for("FAILED", 2)
        assert desk.server.ailing() == ["export"]
        warnings = [record for record in caplog.records if record.name == "server.exporting"]
        assert len(warnings) == 1
        wall.unlink()
        watch.wait_for("MADE")
        assert desk.server.ailing() == []
    desk.server.drain()
    assert check_exports(ledger_path(desk.root, "default", None)) == []
    told = status_of(desk)
    assert told["failure"] is None
    assert told["through"] == len(desk.entries())


async def test_without_pyarrow_writes_go_on_and_the_failure_is_kept(
    open_desk: OpenDesk, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P214."""
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.endswith("export.exporter"):
            raise ModuleNotFoundError("No module named 'pyarrow'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    desk = open_desk()
    async with desk.client() as client:
        await desk.call(client, "remember", text="one")
        assert "pyarrow cannot be imported" in watch.wait_for("FAILED")
        await desk.call(client, "remember", text="two")
    assert desk.server.ailing() == ["export"]
    desk.server.drain()
    assert len(desk.entries("memory.recorded")) == 2


async def test_a_failure_is_kept_beside_the_ledger_until_the_next_success(
    open_desk: OpenDesk, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    from store.export import segments

    desk = open_desk(config(interval_seconds=1))
    real = segments.Hashed.write
    broken = [True]

    def write(self: Any, data: Any) -> int:
        if broken[0]:
            raise OSError(28, "No space left on device")
        return real(self, data)

    monkeypatch.setattr(segments.Hashed, "write", write)
    folder = desk.root / "default" / "exports"
    async with desk.client() as client:
        await desk.call(client, "remember", text="one")
        watch.wait_for("FAILED")
        told = read_failure(folder)
        assert told is not None
        assert "No space left" in told[1]
        assert "No space left" in status_of(desk)["failure"]
        (finding,) = doctor_exports(Subject(desk.settings, (desk.identity,), {}))
        assert finding.mark == "warn"
        assert "No space left" in finding.found
        broken[0] = False
        watch.wait_for("MADE")
    assert read_failure(folder) is None
    (finding,) = doctor_exports(Subject(desk.settings, (desk.identity,), {}))
    assert finding.mark == "ok"


async def test_at_the_end_a_pass_under_way_is_given_up(
    open_desk: OpenDesk, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    from store.export import segments

    begun, check = threading.Event(), segments.Work.check

    def waits_for_the_end(self: Any) -> None:
        begun.set()
        stopping = threading.Event()
        while not self.stop():
            stopping.wait(0.01)
        check(self)

    monkeypatch.setattr(segments.Work, "check", waits_for_the_end)
    desk = open_desk()
    async with desk.client() as client:
        await desk.call(client, "remember", text="one")
        assert begun.wait(GUARD)
    desk.server.drain()
    thread = desk.server._ledgers._exports._thread
    assert thread is not None
    assert not thread.is_alive()
    folder = desk.root / "default" / "exports"
    assert not (folder / "manifest.json").exists()
    assert [path.name for path in folder.rglob("*.tmp")] == []


async def test_status_says_in_words_how_the_exports_stand(open_desk: OpenDesk, watch: Watch) -> None:
    desk = open_desk()

    def line() -> str:
        done = CliRunner().invoke(app, ["status", "--root", str(desk.root)])
        (found,) = [line for line in done.output.splitlines() if line.startswith("exports")]
        return str(found)

    async with desk.client() as client:
        await desk.call(client, "remember", text="one")
        watch.wait_for("MADE")
    desk.server.drain()
    assert "through sequence 3, written 20" in line()
    folder = desk.root / "default" / "exports"
    (folder / "failure.json").write_text('{"at": "2026-03-02T21:00:00Z", "what": "OSError: full\\u001b[2J"}')
    assert "failed 2026-03-02T21:00:00Z: OSError: full" in line()
    assert "\x1b" not in line()
    folder.rename(folder.with_name("elsewhere"))
    assert "none yet" in line()
    folder.symlink_to(folder.with_name("elsewhere"))
    assert "symbolic link" in line()


async def test_a_run_is_exported_and_removed_with_its_exports(open_desk: OpenDesk, watch: Watch) -> None:
    desk = open_desk(
        '[clock]\nmode = "simulated"\nrun = "march"\n[agents.local]\nprofile = "solo"\n', agent="local"
    )
    meta = {"deskbook/now": "2026-03-02T21:00:00Z"}
    async with desk.client() as client:
        await desk.call(client, "remember", text="one", meta=meta)
        watch.wait_for("MADE")
    desk.server.drain()
    path = ledger_path(desk.root, "default", "march")
    assert check_exports(path) == []
    done = CliRunner().invoke(app, ["run", "rm", "march", "--yes", "--root", str(desk.root)])
    assert done.exit_code == 0, done.output
    assert not path.parent.exists()


def test_no_tool_or_resource_of_an_agent_leads_to_the_exports() -> None:
    """P216: exports are files of the account that runs the server, and no agent's to ask for."""
    from server.permissions import TOOL_ACTIONS, Action
    from server.resources import RESOURCES, TEMPLATES
    from server.tools import TOOLS

    assert Action.EXPORT not in TOOL_ACTIONS.values()
    assert not [name for name in TOOLS if "export" in name]
    assert not [item.uri for item in (*RESOURCES, *TEMPLATES) if "export" in item.uri]


def test_a_server_starts_without_pyarrow() -> None:
    code = "import sys, server.app, server.http.hosting; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
