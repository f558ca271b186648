"""Options that every command takes, and the ledger they name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path
from typing import Annotated

import typer

from store import Book
from store.clock import parse_instant
from store.embedding.loading import Encoder
from store.errors import InvalidInput, NotFound
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

_A_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Place:
    """The settings in force and the ledger that a command is about."""

    settings: Settings
    strategy: str
    run: str | None

    @property
    def zone(self) -> tzinfo | None:
        """The time zone in which a person is shown times; None is UTC, written as `Z`."""
        return None if self.settings.clock.timezone == "UTC" else self.settings.clock.zone

    def instant(self, text: str | None, option: str) -> int | None:
        """Microseconds of an option; a date is the start of that day in the config's zone, and None stays None.

        Raises InvalidInput naming the option for anything else than a time with offset or a date.
        """
        if text is None:
            return None
        if _A_DATE.fullmatch(text.strip()):
            try:
                start = datetime.combine(date.fromisoformat(text.strip()), time(), self.settings.clock.zone)
                return parse_instant(start.astimezone(UTC).isoformat(), field=option)
            except (ValueError, OverflowError):
                raise InvalidInput(
                    f"{option} is no day of the calendar.", field=option, hint="Write it as 2026-03-02."
                ) from None
        return parse_instant(text, field=option)

    @property
    def path(self) -> Path:
        """The ledger file, absolute; it may not exist."""
        return ledger_path(self.settings.store.root, self.strategy, self.run)

    def open(self, encoder: Encoder | None = None, *, make: bool = False) -> Book:
        """The ledger, with an encoder or not; it must exist, unless a live one is to be made.

        Raises NotFound or the StoreError that fits.
        """
        make = make and self.run is None
        if not make:
            self.check_present()
        return Book.open(
            self.settings.store.root,
            self.strategy,
            self.run,
            create=make,
            durability=self.settings.store.durability,
            zone=self.settings.clock.zone,
            symbols=self.settings.symbols.rules,
            encoder=encoder,
            policy=self.settings.policy,
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
    """Microseconds of an --as-of option, which is exact: no date will do; None stays None."""
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
