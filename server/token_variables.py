"""Which environment variable a client takes an agent's token from, when nobody says: one for each agent.

A host reads one value from one variable, so two agents with the same variable would be the same agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from store.limits import IDENTIFIER_CHARS

from .identity import LOCAL_AGENT
from .sections import AgentSettings
from .settings import Settings

DEFAULT_VARIABLE: Final = "DESKBOOK_TOKEN"
"""The variable of the one person's agent, where there is no config."""

_HASH_CHARS: Final = 6


def token_variable(settings: Settings, agent: str) -> str:
    """The variable of an agent: its `token_env`, else one that is named after it."""
    if settings.config is None:
        return DEFAULT_VARIABLE
    own = settings.agents[agent].token_env
    return own if own is not None else _named_after(agent, settings.agents)


def agent_word(settings: Settings, agent: str) -> str:
    """A word of small letters, digits and underscores for an agent, which no other agent of the config has."""
    if settings.config is None:
        return LOCAL_AGENT
    return _named_after(agent, settings.agents).removeprefix("DESKBOOK_").removesuffix("_TOKEN").lower()


def _named_after(agent: str, agents: Mapping[str, AgentSettings]) -> str:
    plain = _plain(agent)
    taken = {_plain(other) for other in agents if other != agent}
    taken |= {other.token_env for name, other in agents.items() if name != agent and other.token_env}
    if plain not in taken and len(plain) <= IDENTIFIER_CHARS:
        return plain
    mark = hashlib.sha256(agent.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS].upper()
    room = IDENTIFIER_CHARS - len(plain) - len(mark) - 1
    word = _word(agent)
    return f"DESKBOOK_{word[: len(word) + min(room, 0)]}_{mark}_TOKEN"


def _plain(agent: str) -> str:
    return f"DESKBOOK_{_word(agent)}_TOKEN"


def _word(agent: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", agent.upper())
