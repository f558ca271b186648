"""Whose a request is: from the bearer token, or on an open loopback server from the launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..identity import Identity, narrowed
from ..tokens import Bearer, TokenFault, Tokens
from .asgi import Scope, header_values
from .refusals import Refused, forbidden_agent, unauthorized

_NEXT = "Send the header `Authorization: Bearer TOKEN`; `deskbook token new AGENT` makes a token."
_FAULTS = {
    TokenFault.MISSING: "This server needs a bearer token, and the request has none.",
    TokenFault.MALFORMED: "The Authorization header is no bearer token, or was sent more than once.",
    TokenFault.UNKNOWN: "The bearer token is not known here.",
    TokenFault.EXPIRED: "The bearer token has expired.",
    TokenFault.REVOKED: "The bearer token was revoked.",
}


@dataclass(frozen=True, slots=True)
class Who:
    """The identity of a request and the public id of its token, None on an open server."""

    identity: Identity
    owner: str | None


class Callers:
    """Tells whose a request is; the claims of a client count for nothing."""

    def __init__(self, tokens: Tokens, identities: Mapping[str, Identity], launched: Identity | None) -> None:
        """`launched` is the identity named at the launch: all who may come, and without any token everybody is it."""
        self._tokens = tokens
        self._identities = identities
        self._launched = launched

    def of(self, scope: Scope) -> Who:
        """The caller; raises the 401 or 403 that fits."""
        sent = header_values(scope, "authorization")
        if self._launched is not None and not self._tokens.required:
            return self._open(self._launched, sent)
        bearer = self._bearer(sent)
        identity = self._identities.get(bearer.agent)
        if identity is None:
            raise _refused(TokenFault.UNKNOWN)
        if self._launched is not None and identity.agent != self._launched.agent:
            raise forbidden_agent()
        return Who(narrowed(identity, read_only=bearer.read_only), bearer.token_id)

    def welcome(self, owner: str | None) -> bool:
        """Whether what a caller opened may stay open."""
        return not self._tokens.required if owner is None else self._tokens.alive(owner)

    def _open(self, launched: Identity, sent: list[str]) -> Who:
        if sent:
            # Whoever sends a token expects to be its agent, and must not be served as somebody else.
            raise unauthorized(
                f"This server takes no tokens: it serves {launched.agent} to everybody on this machine.",
                "Take the Authorization header away, or make a token with `deskbook token new` for this --root.",
                given=True,
            )
        return Who(launched, None)

    def _bearer(self, sent: list[str]) -> Bearer:
        if not sent:
            raise _refused(TokenFault.MISSING)
        scheme, _, secret = sent[0].strip().partition(" ")
        if len(sent) > 1 or scheme.casefold() != "bearer" or not secret.strip():
            raise _refused(TokenFault.MALFORMED)
        found = self._tokens.check(secret.strip())
        if isinstance(found, TokenFault):
            raise _refused(found)
        return found


def _refused(fault: TokenFault) -> Refused:
    return unauthorized(_FAULTS[fault], _NEXT, given=fault is not TokenFault.MISSING)
