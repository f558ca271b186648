"""Where a demo lives: its own root, one run (and so one ledger) per demo, and the config that names both."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from store.errors import ConfigError

STRATEGY = "demo"
RESEARCHER, TRADER = "researcher", "trader"
_RUNS_A_DAY = 10_000


@dataclass(frozen=True, slots=True)
class DemoPlace:
    """One demo's absolute root, run id, and the files beside the ledger."""

    root: Path
    run: str

    @property
    def config(self) -> Path:
        """The config that the demo's servers run with; it serves to explore the ledger afterwards."""
        return self.root / f"{self.run}.toml"

    def log(self, agent: str) -> Path:
        """Where that agent's server writes its stderr."""
        return self.root / f"{self.run}.{agent}.log"


def default_root() -> Path:
    """The demo's own folder in the platform's user data directory, apart from any real desk."""
    return platformdirs.user_data_path("deskbook-demo", appauthor=False)


def claim_place(root: Path) -> DemoPlace:
    """Take the day's next free run in `root` by creating its config, so that two demos at once take two.

    Raises ConfigError when the folder cannot be written.
    """
    root = root.expanduser().absolute()
    today = datetime.now(UTC).date().isoformat()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, _RUNS_A_DAY):
            place = DemoPlace(root, f"demo-{today}-{number}")
            if _create(place.config, config_text(place)):
                return place
    except OSError as error:
        raise ConfigError(
            f"The demo cannot write to {root}: {error.strerror}.",
            field="root",
            hint="Name a folder that can be written with --root.",
        ) from error
    raise ConfigError(
        f"{root} already holds {_RUNS_A_DAY - 1} demos of {today}.", hint="Name another folder."
    )


def config_text(place: DemoPlace) -> str:
    """The config of a demo: two agents, one ledger of the demo's run, a simulated clock."""
    return "\n".join(
        [
            "# Written by `deskbook demo`.",
            "[store]",
            f"root = {_quoted(str(place.root))}",
            f"strategy = {_quoted(STRATEGY)}",
            "",
            "[clock]",
            'mode = "simulated"',
            f"run = {_quoted(place.run)}",
            'inherit = "none"',
            "",
            f"[agents.{RESEARCHER}]",
            'profile = "researcher"',
            "",
            f"[agents.{TRADER}]",
            'profile = "trader"',
            "",
            "[limits]",
            "calls_per_minute = 1000000 # two programs that make a year's calls in half a minute",
            "",
        ]
    )


def _quoted(text: str) -> str:
    """A TOML basic string; its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _create(path: Path, text: str) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True
