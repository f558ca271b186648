"""Where a person publishes to, and the key that is for this alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from store.embedding.endpoint import KEY_VARIABLE
from store.errors import ConfigError

from ..addresses import is_loopback
from ..reviewers import PREFIX as REVIEWER_PREFIX
from ..reviewers import VARIABLE as REVIEWER_VARIABLE
from ..settings import Settings
from ..tokens import PREFIX as BEARER_PREFIX
from ..tokens import Bearer, TokenFault, Tokens, agents_of, token_path

SHORTEST: Final = 8
LONGEST: Final = 1_024
_KEY: Final = re.compile(rf"[!-~]{{{SHORTEST},{LONGEST}}}")
_TOKENS: Final = (BEARER_PREFIX, REVIEWER_PREFIX)
_SIGNING: Final = "PRIVATE+KEY+"


@dataclass(frozen=True, slots=True)
class Target:
    """The address of the POST, the key that goes with it, and the seconds that an answer may take."""

    url: str
    host: str
    key: str = field(repr=False)
    seconds: float

    @property
    def recorded(self) -> str:
        """The address as the ledger keeps it: without its query, which may hold what is nobody else's."""
        return urlunsplit((*urlsplit(self.url)[:3], "", ""))


def find_target(settings: Settings, environ: Mapping[str, str]) -> Target:
    """The target of `[publish]`; raises ConfigError where it is not whole, not safe, or its key serves elsewhere."""
    asked = settings.publish
    if asked.endpoint is None or asked.key_env is None:
        missing = "endpoint" if asked.endpoint is None else "key_env"
        raise ConfigError(
            f"publish.{missing} is missing, so there is nowhere to publish to.",
            field=f"publish.{missing}",
            hint="Write a section [publish] with endpoint and key_env into the config.",
        )
    parts = urlsplit(asked.endpoint)
    if not re.fullmatch(r"[!-~]+", asked.endpoint) or not parts.hostname:
        raise ConfigError(
            "publish.endpoint is no address in ASCII.",
            field="publish.endpoint",
            hint="Write other letters of a host as xn--, and of a path with %.",
        )
    if parts.scheme != "https" and not is_loopback(parts.hostname):
        raise ConfigError(
            "publish.endpoint is plain http to another machine, where anybody on the way could read the key.",
            field="publish.endpoint",
            hint="Use https; plain http is for 127.0.0.1, [::1] and localhost.",
        )
    key = _key(asked.key_env, environ)
    _refuse_shared(settings, asked.key_env, key, environ)
    if key in asked.endpoint:
        raise ConfigError(
            "publish.endpoint holds the key.",
            field="publish.endpoint",
            hint="The key belongs into its variable alone.",
        )
    return Target(urlunsplit((*parts[:4], "")), parts.netloc, key, float(asked.timeout_seconds))


def _key(variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "").strip()
    if not _KEY.fullmatch(key):
        said = "is not set" if not key else "holds no key that can be sent"
        raise ConfigError(
            f"{variable}, which [publish] key_env names, {said}.",
            field="publish.key_env",
            hint=f"Set it to a key for publishing alone, {SHORTEST} to {LONGEST:,} visible ASCII characters.",
        )
    return key


def _refuse_shared(settings: Settings, variable: str, key: str, environ: Mapping[str, str]) -> None:
    """Raise ConfigError for a key that opens anything of the desk itself: it is shown to another server."""
    signing = settings.checkpoint.key_env
    if key.startswith(_SIGNING) or variable == signing or (signing and environ.get(signing) == key):
        raise _shared("signs checkpoints")
    tokens = Tokens(token_path(settings.store.root), agents_of(settings), environ)
    known = tokens.check(key)
    accepted = isinstance(known, Bearer) or known in {TokenFault.EXPIRED, TokenFault.REVOKED}
    if accepted or key.startswith(_TOKENS) or key == environ.get(REVIEWER_VARIABLE):
        raise _shared("is a token of this desk")
    if key == environ.get(KEY_VARIABLE):
        raise _shared("is that of the embedding endpoint")


def _shared(what: str) -> ConfigError:
    return ConfigError(
        f"The key for publishing {what}.",
        field="publish.key_env",
        hint="Use a key that the community gave out for publishing alone; whoever it is sent to can use it.",
    )
