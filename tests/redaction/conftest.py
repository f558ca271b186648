"""A ledger with a secret in it, in every place where one can get to, and a byte search of every file."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server import cli
from server.reviewer_file import reviewer_path
from server.reviewers import VARIABLE, add_token
from store import Book, Caller, SearchRequest
from store.commands import FlagMemory, OpenThesis, Remember, UpdateThesis
from store.export.exporter import bring_up_to_date
from store.paths import ledger_path
from store.redaction.desk import Desk, Redacted, Wanted
from store.redaction.register import Register

SECRET = 'aunt Quorvex pays „Hügel & Söhne" 目标价 with a \\ slash'
PARTS = ("Quorvex", "Söhne", "quorvextag")
PAID = "Quorvex pays 100 a month for it"
ANN = Caller("ann", "solo", "ses-1", "remember")
REVIEWER = Caller("rita", "reviewer", "ses-rita", "redact", reviewer=True)


def forms(text: str) -> list[bytes]:
    """A text in UTF-8, as JSON has it with and without escapes, and once more within JSON."""
    spelled = {text}
    for ascii_only in (False, True):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        spelled |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    return [each.encode() for each in spelled]


def traces(folder: Path, *texts: str) -> list[str]:
    """Every file below a folder that holds one of the texts in any form, small letters and capitals alike."""
    wanted = [form.lower() for text in texts for form in forms(text)]
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            raw = path.read_bytes().lower()
            found += [f"{path.name}: {form!r}" for form in wanted if form in raw]
    return found


@pytest.fixture
def traced() -> Callable[..., list[str]]:
    return traces


@pytest.fixture
def register(tmp_path_factory: pytest.TempPathFactory) -> Register:
    return Register(tmp_path_factory.mktemp("registers") / "redactions")


@pytest.fixture
def redact(tmp_path: Path, register: Register) -> Callable[..., Redacted]:
    """Take something away as a reviewer; the ledger must not be open for long reads."""

    def take(*names: str, reason: str = "by mistake", run: str | None = None, **wanted: Any) -> Redacted:
        hold = wanted.pop("legal_hold", False)
        caller = wanted.pop("caller", REVIEWER)
        desk = Desk(tmp_path, "default", run, register, legal_hold=hold)
        return desk.redact(caller, Wanted(names=names, **wanted), reason)

    return take


@pytest.fixture
def secret(seat: Any) -> str:
    """The id of a thesis that holds the secret in text, tags, terms and a note, searched and shown; and much else."""
    for number in range(20):
        seat.do(Remember(text=f"plain note {number} on margins", symbol="AAPL"))
    made = seat.do(
        OpenThesis(
            text=SECRET,
            symbol="AAPL",
            horizon="Quorvex again",
            invalidation="Söhne fails",
            tags=("quorvextag",),
        ),
        key="k-1",
    )
    seat.find("aunt Quorvex")
    seat.find("", tags=("quorvextag",))
    seat.do(UpdateThesis(thesis_id=made.id, text=f"again: {SECRET}"))
    seat.find("margins and Quorvex")
    seat.do(FlagMemory(memory_id=made.id, reason="wrong", note="since Quorvex said so"))
    seat.state()
    seat.get(made.id)
    for number in range(5):
        seat.do(Remember(text=f"later note {number} on margins", symbol="AAPL"))
    return str(made.id)


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder under which the user's configuration lies, outside of the store."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder / ".config" / "deskbook" / "checkpoint-keys"


@pytest.fixture
def token(root: Path) -> str:
    """A reviewer's token, of Rita."""
    return add_token(reviewer_path(root), "Rita")


@pytest.fixture
def run(
    root: Path, home: Path, token: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run a command in this process on the test's root, as Rita unless told otherwise."""

    def start(*words: object, on: Path | None = None, as_rita: bool = True) -> Ran:
        with monkeypatch.context() as patch:
            patch.setattr("sys.argv", ["deskbook", *map(str, words), "--root", str(on or root)])
            if as_rita:
                patch.setenv(VARIABLE, token)
            capsys.readouterr()
            with pytest.raises(SystemExit) as end:
                cli.main()
            said = capsys.readouterr()
        code = end.value.code
        assert "Traceback" not in said.err
        return Ran(code if isinstance(code, int) else 0, said.out, said.err)

    return start


@pytest.fixture
def noted(root: Path) -> tuple[str, int]:
    """The id of a memory that holds the secret, and its sequence; searched, exported."""
    with closing(Book.open(root, "default")) as book:
        for number in range(10):
            book.execute(ANN, Remember(text=f"plain note {number}"))
        made = book.execute(ANN, Remember(text=PAID, tags=("quorvextag",)))
        book.search(ANN, SearchRequest(query="Quorvex"))
        bring_up_to_date(root, ledger_path(root, "default", None), book.snapshot)
    return made.id, made.sequence
