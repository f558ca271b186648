"""Mending what is only derived: projections, the tree's cache, the Parquet copies. No ledger is ever touched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from store import Book
from store.audit import Report, verify
from store.errors import DeskbookError
from store.export.checking import check_exports
from store.paths import ledger_path, refuse_links
from store.proofs.cache import FILE as TREE_CACHE

from .findings import Finding, fail, fault, ok
from .storing import ledgers_of
from .subject import Subject


def repair(subject: Subject) -> Iterator[Finding]:
    """Verify each ledger of the desk and make anew what is derived from it, where that is what is wrong."""
    for strategy, run in ledgers_of(subject):
        path = ledger_path(subject.root, strategy, run)
        if path.exists():
            name = f"repair {strategy}" if run is None else f"repair {strategy}/{run}"
            try:
                refuse_links(subject.root, path)
                yield from _repaired(subject, name, path, strategy, run)
            except DeskbookError as error:
                yield fault(name, error)


def _repaired(subject: Subject, name: str, path: Path, strategy: str, run: str | None) -> Iterator[Finding]:
    report = verify(path, strategy, run)
    if not report.sound and not report.mendable:
        yield fail(
            name,
            f"the ledger itself is not sound: {_first(report)}",
            "Nothing was changed. Keep the file, and restore a backup with `deskbook restore FILE --force`.",
        )
        return
    if report.sound:
        yield ok(name, "the ledger and its projections are sound")
    else:
        with closing(_opened(subject, strategy, run)) as book:
            book.rebuild(lambda _sequence: None)
        again = verify(path, strategy, run)
        if again.sound:
            yield ok(name, f"made the projections anew: {_first(report)}")
        else:
            yield fail(name, f"projections made anew are not sound: {_first(again)}", "Restore a backup.")
            return
    yield from _caches(name, path)


def _caches(name: str, path: Path) -> Iterator[Finding]:
    cache, copies = path.with_name(TREE_CACHE), path.parent / "exports"
    if cache.is_symlink() or cache.exists():
        shutil.rmtree(cache) if cache.is_dir() and not cache.is_symlink() else cache.unlink()
        yield ok(name, "removed the tree's cache; the next checkpoint makes it anew")
    if copies.is_dir() and not copies.is_symlink() and (wrong := check_exports(path)):
        shutil.rmtree(copies)
        yield ok(name, f"removed the Parquet copies ({wrong[0].what}); a server makes them anew")
    yield from _vectors(name, path)


def _vectors(name: str, path: Path) -> Iterator[Finding]:
    try:
        from store.vectors.checking import FOLDER, check_vectors  # noqa: PLC0415 - brings numpy
    except ImportError:  # without numpy nothing can use them either
        return
    folder = path.parent / FOLDER
    if folder.is_dir() and not folder.is_symlink() and (wrong := check_vectors(path)):
        shutil.rmtree(folder)
        yield ok(name, f"removed the vectors ({wrong[0].what}); a server makes them anew")


def _opened(subject: Subject, strategy: str, run: str | None) -> Book:
    settings = subject.settings
    return Book.open(
        subject.root,
        strategy,
        run,
        create=False,
        durability=settings.store.durability,
        zone=settings.clock.zone,
        symbols=settings.symbols.rules,
    )


def _first(report: Report) -> str:
    finding = report.findings[0]
    where = "" if finding.sequence is None else f"sequence {finding.sequence}: "
    more = len(report.findings) - 1
    return f"{where}{finding.what}" + (f" (and {more} more)" if more else "")
