"""Where a demo lives: its own root, two runs and the live ledger beside them, and a config for each desk.

The demo on the wall clock has a strategy of its own, so that its live ledger begins empty.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import platformdirs

from store.errors import ConfigError

STRATEGY = "demo"
RESEARCHER, TRADER, HARNESS = "researcher", "trader", "harness"
AGENTS = {
    "run": (RESEARCHER, TRADER, HARNESS),
    "live": (RESEARCHER,),
    "heir": (RESEARCHER, TRADER, HARNESS),
    "alone": (RESEARCHER, TRADER, HARNESS),
}
PREFIX = {"run": "demo", "alone": "live-demo"}
_RUNS_A_DAY = 10_000


@dataclass(frozen=True, slots=True)
class DemoPlace:
    """One desk of a demo: the absolute root, the name of its config, and the ledger it works on.

    That is a run of the desk's name ("run"; "heir" for one that inherits live) or a live ledger: the demo's ("live"),
    or that of a strategy of the desk's name ("alone").
    """

    root: Path
    name: str
    ledger: Literal["run", "live", "heir", "alone"] = "run"

    @property
    def run(self) -> str | None:
        """The run, None on a live ledger."""
        return self.name if self.ledger in {"run", "heir"} else None

    @property
    def strategy(self) -> str:
        """The strategy whose ledger it is."""
        return self.name if self.ledger == "alone" else STRATEGY

    @property
    def config(self) -> Path:
        """The config that the desk's servers run with; it serves to explore the ledger afterwards."""
        return self.root / f"{self.name}.toml"

    def log(self, agent: str) -> Path:
        """Where that agent's server writes its stderr."""
        return self.root / f"{self.name}.{agent}.log"

    def live(self) -> DemoPlace:
        """The live desk that writes down what this place's run taught."""
        return DemoPlace(self.root, f"{self.name}-live", "live")

    def heir(self) -> DemoPlace:
        """The second run, which inherits the live ledger."""
        return DemoPlace(self.root, f"{self.name}-heir", "heir")


def default_root() -> Path:
    """The demo's own folder in the platform's user data directory, apart from any real desk."""
    return platformdirs.user_data_path("deskbook-demo", appauthor=False)


def claim_place(root: Path, ledger: Literal["run", "alone"] = "run") -> DemoPlace:
    """Take the day's next free name in `root` by creating its configs, so that two demos at once take two.

    Raises ConfigError when the folder cannot be written.
    """
    root = root.expanduser().absolute()
    today = datetime.now(UTC).date().isoformat()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, _RUNS_A_DAY):
            place = DemoPlace(root, f"{PREFIX[ledger]}-{today}-{number}", ledger)
            if _create(place.config, config_text(place)):
                for other in (place.live(), place.heir()) if ledger == "run" else ():
                    _create(other.config, config_text(other))
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
    """The config of one desk of a demo: its agents, its ledger and its clock."""
    inherit = "live" if place.ledger == "heir" else "none"
    run = ['mode = "simulated"', f"run = {_quoted(place.name)}", f"inherit = {_quoted(inherit)}"]
    agents = [
        line for name in AGENTS[place.ledger] for line in (f"[agents.{name}]", f'profile = "{name}"', "")
    ]
    return "\n".join(
        [
            "# Written by `deskbook demo`.",
            "[store]",
            f"root = {_quoted(str(place.root))}",
            f"strategy = {_quoted(place.strategy)}",
            "",
            "[clock]",
            *(['mode = "live"'] if place.run is None else run),
            "",
            *agents,
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
