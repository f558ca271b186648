"""Who may review: whether anybody can decide what the config makes wait."""

from __future__ import annotations

from collections.abc import Iterator

from store.errors import StoreError

from ..reviewer_file import read_reviewers, reviewer_path
from ..settings import Settings
from .findings import Finding, fault, ok, warn
from .storing import is_folder
from .subject import Subject

NAME = "reviewers"


def check_reviewers(subject: Subject) -> Iterator[Finding]:
    """The reviewer file, and whether there is a reviewer where memories wait for one."""
    try:
        known = read_reviewers(reviewer_path(subject.root)).reviewers
    except StoreError as error:
        if is_folder(subject.root):  # else that is what is wrong, and told
            yield fault(NAME, error)
        return
    waiting = _gates(subject.settings)
    if not known and waiting:
        kinds = ", ".join(waiting)
        yield warn(
            NAME,
            f"by [approval] these wait for a person, and nobody is a reviewer: {kinds}",
            "Add one: `deskbook reviewer add NAME` asks for a passphrase that no agent knows.",
        )
    elif known:
        yield ok(NAME, f"may review: {', '.join(reviewer.name for reviewer in known)}")


def _gates(settings: Settings) -> list[str]:
    """The gates of the config that let something wait, as it names them; what nobody answers in a host waits too."""
    approval = settings.approval
    tables = {"": approval.gates} | {f"{name}.": table.gates for name, table in approval.profiles.items()}
    return [f"{of}{kind}" for of, gates in tables.items() for kind, gate in gates.items() if gate != "auto"]
