"""What was imported and redacted stays away when the same source is imported again."""

from __future__ import annotations

import json
import lzma
from contextlib import closing
from pathlib import Path
from typing import Any

from store import Book, Caller
from store.audit import verify
from store.importers.lumibot import import_lumibot
from store.paths import ledger_path
from store.redaction.desk import Desk, Wanted
from store.redaction.register import Register
from store.rows import EntryFilter

REVIEWER = Caller("rita", "reviewer", "ses-rita", "redact", reviewer=True)


def test_an_import_that_is_made_again_brings_nothing_back(
    tmp_path: Path, fixtures: Path, traced: Any
) -> None:
    source, root = tmp_path / "lumibot.sqlite", tmp_path / "root"
    source.write_bytes(lzma.decompress((fixtures / "lumibot_memory.sqlite.xz").read_bytes()))
    made = import_lumibot(source, root, None, agent="importer")
    path = ledger_path(root, made.strategy, None)
    with closing(Book.open(root, made.strategy)) as book:
        entries = book.log(EntryFilter(limit=100_000))
    texts = {entry.subject_id: json.loads(entry.content).get("text", "") for entry in entries if entry.kind}
    names = tuple(name for name, text in texts.items() if len(text) >= 20)[:3]
    assert len(names) == 3
    desk = Desk(root, made.strategy, None, Register(tmp_path / "registers"))
    assert desk.redact(REVIEWER, Wanted(names=names, with_quotes=True), "by mistake").remains == []
    again = import_lumibot(source, root, None, agent="importer", into_existing=True)
    assert sum(again.content()["added"].values()) == 0
    with closing(Book.open(root, made.strategy)) as book:
        book.rebuild(lambda _: None)
    assert traced(root, *(texts[name] for name in names)) == []
    assert verify(path, made.strategy, None).findings == ()
