"""A clock set by hand, and a server's view of the tokens below a test's root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from server.sections import AgentSettings
from server.tokens import Tokens, token_path

AGENTS = {name: AgentSettings(profile="trader") for name in ("trader", "researcher")}
Open = Callable[..., Tokens]


class Hands:
    """A clock that stands where a test sets it, in seconds since the epoch."""

    def __init__(self) -> None:
        self.seconds = 1_772_461_800.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Hands:
    return Hands()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return token_path(tmp_path / "root")


@pytest.fixture
def opened(path: Path, now: Hands) -> Open:
    """A server's view of the test's tokens."""

    def start(agents: dict[str, AgentSettings] = AGENTS, **environ: str) -> Tokens:
        return Tokens(path, agents, environ, now)

    return start
