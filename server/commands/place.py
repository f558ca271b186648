"""Options that every command takes, and the ledger they name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from store import Book
from store.clock import parse_instant
from store.errors import NotFound
from store.paths import ledger_path

from .. import __version__
from ..settings import Settings, load_settings

ConfigOption = Annotated[Path | None, typer.Option("--config", help="Configuration file (desk.toml).")]
RootOption = Annotated[Path | None, typer.Option("--root", help="Folder that holds the ledgers.")]
StrategyOption = Annotated[str | None, typer.Option("--strategy", help="Strategy whose ledger is meant.")]
RunOption = Annotated[
    str | None, typer.Option("--run", help="A run of the strategy instead of its live ledger.")
]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", help="As the ledger stood then: ISO time with offset.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True, slots=True)
class Place:
    """The settings in force and the ledger that a command is about."""

    settings: Settings
    strategy: str
    run: str | None

    @property
    def path(self) -> Path:
        """The ledger file, absolute; it may not exist."""
        return ledger_path(self.settings.store.root, self.strategy, self.run)

    def open(self) -> Book:
        """The ledger, which must exist; raises NotFound or the StoreError that fits."""
        self.check_present()
        return Book.open(
            self.settings.store.root,
            self.strategy,
            self.run,
            create=False,
            durability=self.settings.store.durability,
            zone=self.settings.clock.zone,
            symbols=self.settings.symbols.rules,
            product=f"deskbook {__version__}",
        )

    def check_present(self) -> None:
        """Raise NotFound that names the path when nothing was written there yet."""
        if not self.path.exists():
            raise NotFound(
                f"There is no ledger at {self.path}.",
                hint="The first write makes it. Check --config, --root, --strategy and --run.",
            )


def as_of_instant(text: str | None) -> int | None:
    """Microseconds of an --as-of option; None stays None."""
    return None if text is None else parse_instant(text, field="--as-of")


def find_place(
    config: Path | None,
    root: Path | None,
    strategy: str | None,
    run: str | None,
    environ: Mapping[str, str] = os.environ,
) -> Place:
    """The place that file, environment and options name; raises ConfigError."""
    flags = {
        "root": None if root is None else str(root),
        "strategy": strategy,
        "run": run,
    }
    settings = load_settings(config=config, flags=flags, environ=environ)
    return Place(settings, settings.store.strategy, settings.run)
