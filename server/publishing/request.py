"""What is sent, byte for byte as it is shown: method, address, headers and JSON body."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from store.errors import InvalidInput
from store.publications import Publication

from .target import Target

Header = tuple[str, str]
_NAMES: Final = (
    ("marketplace_listing_id", "marketplaceListingId"),
    ("community_publication_id", "publicationId"),
    ("parent_post_id", "parentPostId"),
    ("verified_trade_source", "verifiedTradeSource"),
)
MASK: Final = "********"


@dataclass(frozen=True, slots=True, repr=False)
class Request:
    """One POST, ready to be sent."""

    url: str
    headers: tuple[Header, ...]
    content: bytes
    key: str

    def shown(self) -> list[str]:
        """The request as a person is shown it, line by line, the key masked."""
        headers = [f"{name}: {value.replace(self.key, MASK)}" for name, value in self.headers]
        return [f"POST {self.url}", *headers, "", self.content.decode()]


def build_request(target: Target, publication: Publication) -> Request:
    """The request that publishes; raises InvalidInput for one that would carry the key in its body."""
    text = _json_text(publication)
    if _escaped(target.key) in text:
        raise InvalidInput(
            "What is to be published holds the key for publishing.",
            field="body",
            hint="Take it out, and ask for a new key if it ever left this machine.",
        )
    content = text.encode()
    headers = (
        ("Host", target.host),
        ("User-Agent", "deskbook"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("Authorization", f"Bearer {target.key}"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(content))),
    )
    return Request(target.url, headers, content, target.key)


def _json_text(publication: Publication) -> str:
    payload: dict[str, Any] = {"body": publication.body}
    for name, wire in _NAMES:
        if (value := getattr(publication, name)) is not None:
            payload[wire] = value
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Escaped, so that a terminal shows every byte that is sent and nothing in it can hide or drive the terminal.
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]
