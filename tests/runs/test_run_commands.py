"""run list, show and rm, and leaks: what they say, what they ask, and what they leave."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from server import refusals
from server.ledgers import MOST_OPEN
from store import Book
from store.commands import Remember
from store.errors import StoreVanished
from store.event_parts import Selected
from store.events import Delivered
from store.ledger import Draft
from store.runs import list_runs, remove_run

if TYPE_CHECKING:
    from conftest import Hands, OpenDesk, Ran, Seat, Server

START = 1_772_461_800_000_000
HOUR = 3_600_000_000
OpenSeat = Callable[..., "Seat"]
Command = Callable[..., "Ran"]
SHOWN = {
    "name",
    "folder",
    "size_bytes",
    "inherit",
    "entries",
    "memories",
    "began_at",
    "last_entry_at",
    "problem",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def make_run(open_seat: OpenSeat, name: str, **options: Any) -> Seat:
    seat = open_seat(run=name, **options)
    seat.do(Remember(text="unicorn"), now=START + HOUR)
    seat.book.close()
    return seat


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def test_runs_are_listed_by_name_with_their_extent(
    open_seat: OpenSeat, deskbook: Command, root: Path
) -> None:
    assert "no runs" in deskbook("run", "list").out
    open_seat().do(Remember(text="live"))
    for name in ("b", "a/b", "日本"):
        make_run(open_seat, name, inherit="live" if name == "b" else "none")
    sizes = {folder: size_of(folder) for folder in (root / "default" / "runs").iterdir()}
    listed = json.loads(deskbook("run", "list", "--json").out)
    assert [run["name"] for run in listed] == ["a/b", "b", "日本"]
    for run in listed:
        assert run.keys() == SHOWN
        assert (run["entries"], run["memories"], run["problem"]) == (3, 1, None)
        assert (run["began_at"], run["last_entry_at"]) == ("2026-03-02T14:30:00Z", "2026-03-02T15:30:00Z")
        assert run["inherit"] == ("live" if run["name"] == "b" else "none")
        assert run["size_bytes"] == sizes[Path(run["folder"])]
    lines = deskbook("run", "list").out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["a/b", "b", "日本"]
    assert "3 entries, 1 memory" in lines[0]
    shown = deskbook("run", "show", "a/b")
    assert ("a/b" in shown.out, shown.code) == (True, 0)
    again = json.loads(deskbook("run", "show", "a/b", "--json").out)
    assert again | {"size_bytes": 0} == listed[0] | {"size_bytes": 0}


def test_listing_and_showing_runs_makes_nothing(deskbook: Command, root: Path) -> None:
    assert deskbook("run", "list").code == 0
    for words in (
        ("run", "show", "r"),
        ("run", "rm", "r", "--yes"),
        ("leaks", "r"),
        ("run", "rm", "..", "--yes"),
    ):
        ran = deskbook(*words)
        assert (ran.code, "no run of that name" in ran.err) == (1, True)
    assert list(root.iterdir()) == []


def no_database(path: Path, hands: Hands) -> None:
    path.write_bytes(b"not a database at all" * 100)


def cut_short(path: Path, hands: Hands) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def emptied(path: Path, hands: Hands) -> None:
    path.write_bytes(b"")


def torn_genesis(path: Path, hands: Hands) -> None:
    hands.change("ill", "UPDATE memory_events SET content = '{' WHERE sequence = 1")


def odd_genesis(path: Path, hands: Hands) -> None:
    hands.change("ill", "UPDATE memory_events SET content = '{\"run\": 7}' WHERE sequence = 1")


def a_folder(path: Path, hands: Hands) -> None:
    path.unlink()
    path.mkdir()


def a_link(path: Path, hands: Hands) -> None:
    path.unlink()
    path.symlink_to(hands.path("well"))


@pytest.mark.parametrize(
    "damage", [no_database, cut_short, emptied, torn_genesis, odd_genesis, a_folder, a_link]
)
def test_a_damaged_run_is_listed_with_what_is_wrong_and_can_be_removed(
    open_seat: OpenSeat, deskbook: Command, hands: Hands, damage: Callable[[Path, Hands], None]
) -> None:
    make_run(open_seat, "well")
    ill = make_run(open_seat, "ill").path
    damage(ill, hands)
    listed = {run["name"]: run for run in json.loads(deskbook("run", "list", "--json").out)}
    assert listed["well"]["problem"] is None
    assert listed["ill"]["problem"]
    assert (listed["ill"]["entries"], listed["ill"]["memories"]) == (0, 0)
    for words in (("run", "list"), ("run", "show", "ill")):
        ran = deskbook(*words)
        assert (ran.code, "ill" in ran.out) == (0, True)
    checked = deskbook("leaks", "ill")
    # A genesis that says nothing of live lets nothing of live be shown, which needs no proof that it is whole.
    assert checked.code == (0 if damage is odd_genesis else 1)
    assert "Traceback" not in checked.err
    removed = deskbook("run", "rm", "ill", "--yes")
    assert (removed.code, ill.parent.exists()) == (0, False)
    assert [run["name"] for run in json.loads(deskbook("run", "list", "--json").out)] == ["well"]
    assert hands.path("well").exists()


def test_rm_names_what_goes_asks_and_goes_only_after_a_yes(
    open_seat: OpenSeat, deskbook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = open_seat()
    live.do(Remember(text="live"))
    folder = make_run(open_seat, "a/b", inherit="live").path.parent
    make_run(open_seat, "other")
    exports = folder / "exports"
    exports.mkdir()
    (exports / "entries.parquet").write_bytes(b"x" * 1000)
    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr("sys.stdin", _typed(answer))
        ran = deskbook("run", "rm", "a/b")
        assert ran.code == 1
        assert str(folder) in ran.out
        assert "3 entries, 1 memory" in ran.out
        assert folder.exists()
    monkeypatch.setattr("sys.stdin", _typed("y\n"))
    size = size_of(folder)
    ran = deskbook("run", "rm", "a/b")
    assert ran.code == 0
    assert f"{size} bytes are free" in ran.out
    assert not folder.exists()
    assert [hit["text"] for hit in live.find()["hits"]] == ["live"]
    assert [run["name"] for run in json.loads(deskbook("run", "list", "--json").out)] == ["other"]


def _typed(answer: str) -> Any:
    return io.TextIOWrapper(io.BytesIO(answer.encode()))


def test_rm_follows_no_link_out_of_the_root(open_seat: OpenSeat, deskbook: Command, tmp_path: Path) -> None:
    folder = make_run(open_seat, "r").path.parent
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    ran = deskbook("run", "rm", "r", "--yes")
    assert (ran.code, "symbolic link" in ran.err) == (1, True)
    assert (elsewhere / "memory.sqlite").exists()
    (listed,) = json.loads(deskbook("run", "list", "--json").out)
    assert "symbolic link" in listed["problem"]
    assert listed["size_bytes"] == 0


def test_a_run_that_is_removed_while_it_is_open_is_never_made_anew(
    open_seat: OpenSeat, deskbook: Command
) -> None:
    seat = open_seat(run="r")
    seat.do(Remember(text="unicorn"), now=START)
    assert deskbook("run", "rm", "r", "--yes").code == 0
    for attempt in (
        lambda: seat.do(Remember(text="after"), now=START),
        lambda: seat.find(who=seat.caller(now=START)),
        lambda: seat.state(seat.caller(now=START)),
    ):
        with pytest.raises(StoreVanished, match="removed or replaced"):
            attempt()
    assert not seat.path.exists()


def test_a_server_that_has_a_removed_run_open_is_told_and_others_go_on(
    serve: Callable[..., Server], desk_hands: Hands, run: str
) -> None:
    server = serve("modern")
    now = "2020-03-02T21:00:00Z"
    server.call("remember", now, run, text="unicorn")
    server.call("remember", now, "another run", text="unicorn")
    remove_run(desk_hands.root, "default", run)
    for tool, arguments in (("remember", {"text": "x"}), ("search_memory", {}), ("get_memory_state", {})):
        told = server.refused(tool, now, run, **arguments)
        assert (told["code"], told["stored"]) == ("store_vanished", "no")
    assert not desk_hands.path(run).exists()
    assert server.call("search_memory", now, "another run")["total"] == 1


def test_leaks_says_what_it_read_and_exits_by_what_it_found(
    open_seat: OpenSeat, deskbook: Command, hands: Hands
) -> None:
    seat = open_seat(run="r")
    note = seat.do(Remember(text="unicorn"), now=START)
    seat.find("unicorn", who=seat.caller(now=START))
    seat.state(seat.caller(now=START))
    clean = deskbook("leaks", "r")
    assert (clean.code, clean.out) == (
        0, "no leak: 1 search and 1 showing with 3 versions read again, 0 leaks\n"
    )  # fmt: skip
    event = Delivered(surface="memory", cut=99, shown=(Selected(id=note.id, version=2),))
    hands.append(seat.book, seat.caller(now=START), Draft(event, "memory", note.id))
    found = deskbook("leaks", "r")
    assert (found.code, found.out.count("sequence 6: ")) == (1, 2)
    assert "LEAKED: 1 search and 2 showings" in found.out
    report = json.loads(deskbook("leaks", "r", "--json").out)
    assert (report["run"], len(report["leaks"])) == ("r", 2)
    assert report["leaks"][0]["sequence"] == 6


@pytest.mark.anyio
async def test_a_desk_serves_more_runs_than_it_keeps_open_and_makes_no_removed_one_anew(
    open_desk: OpenDesk,
) -> None:
    desk = open_desk('[clock]\nmode = "simulated"\n[agents.a]\nprofile = "trader"\n', "a")
    names = [f"run {number}" for number in range(MOST_OPEN + 4)]

    def at(name: str) -> dict[str, str]:
        return {"deskbook/now": "2020-03-02T21:00:00Z", "deskbook/run": name}

    async with desk.client() as client:
        for word in ("first", "second"):
            for name in names:
                await desk.call(client, "remember", meta=at(name), text=f"unicorn {name} {word}")
        for name in names:
            found = await desk.call(client, "search_memory", meta=at(name), query="unicorn")
            texts = [f"unicorn {name} {word}" for word in ("second", "first")]
            assert [hit["text"] for hit in found["hits"]] == texts
        remove_run(desk.root, "default", names[0])  # closed by now, as are the others unused longest
        told = await desk.refused(client, "remember", meta=at(names[0]), text="x")
        assert told["code"] == "store_vanished"
    assert [run.name for run in list_runs(desk.root, "default")] == sorted(names[1:])


@pytest.mark.anyio
async def test_one_server_answers_other_runs_while_one_run_is_held(open_desk: OpenDesk, hands: Hands) -> None:
    desk = open_desk('[clock]\nmode = "simulated"\n[agents.a]\nprofile = "trader"\n', "a")
    hands.root = desk.root
    answered: list[str] = []

    async def write(name: str) -> None:
        meta = {"deskbook/now": "2020-03-02T21:00:00Z", "deskbook/run": name}
        await desk.call(client, "remember", meta=meta, text="unicorn")
        assert (await desk.call(client, "search_memory", meta=meta, query="unicorn"))["total"] > 0
        answered.append(name)

    async with desk.client() as client:
        await write("held")
        async with anyio.create_task_group() as tasks:
            with hands.hold("held"):
                tasks.start_soon(write, "held")
                await write("free")
                await write("new")
    assert answered == ["held", "free", "new", "held"]


@pytest.mark.anyio
async def test_a_call_of_one_run_never_waits_to_write_down_what_another_run_owes(
    open_desk: OpenDesk, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk('[clock]\nmode = "simulated"\n[agents.a]\nprofile = "trader"\n', "a")
    hands.root = desk.root
    held, free = ({"deskbook/now": "2020-03-02T21:00:00Z", "deskbook/run": name} for name in ("held", "free"))
    async with desk.client() as client:
        for _ in range(3):
            await desk.refused(client, "remember", meta=held, text="")
        await desk.call(client, "remember", meta=free, text="unicorn")
        monkeypatch.setattr(refusals, "WINDOW_SECONDS", 0.0)  # what is owed is due from here on
        written: list[str] = []
        right = Book.note_failed
        monkeypatch.setattr(
            Book,
            "note_failed",
            lambda book, *said: (written.append(str(book.genesis.run)), right(book, *said)),
        )
        with hands.hold("held"):
            await desk.call(client, "remember", meta=free, text="unicorn")
            await desk.refused(client, "advance_clock", meta=free, now="2020-03-03T21:00:00Z")
        assert written == []
        await desk.call(client, "remember", meta=held, text="unicorn")
        assert written == ["held"]
    assert [each.get("count", 1) for each in desk.contents("call.failed", run="held")] == [1, 2]
