"""Secrets that are known by their own shape, as a table: what each is, how it begins, and its pattern.

Every pattern begins with fixed text and repeats within bounds, so that hostile text costs no more
than plain text. None looks at what stands around a secret; `labelled` does that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_LONGEST = 400
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret; the pattern is tried only where the text it begins with stands somewhere."""

    what: str
    head: str
    pattern: re.Pattern[str]
    fits: Callable[[str], bool] | None = None


def is_random(value: str, *, least: int = 8) -> bool:
    """Whether a value looks drawn rather than written: a digit among letters, or capitals inside a word."""
    if len(value) < least or _UUID.fullmatch(value):
        return False
    return (any(map(str.isdigit, value)) and any(map(str.isalpha, value))) or bool(
        re.search(r"[a-z][A-Z][A-Za-z]{0,20}[a-z]?[A-Z]", value)
    )


def _one_long_part(value: str) -> bool:
    """A key has a long part without hyphens, or says what kind it is; a slug such as sk-hynix-capex has not."""
    named = re.match(r"(?:sk|rk)-(?:live|test|proj|ant|or|svcacct|admin)-", value)
    return any(len(part) >= (10 if named else 16) for part in re.split(r"[-_]", value))


def _mixed(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    return digits >= 2 and len(value) - digits >= 4


def _shape(
    what: str, heads: str, tail: str, *, fits: Callable[[str], bool] | None = None
) -> tuple[Shape, ...]:
    """One shape for each head. What a head is a word's beginning of is asked after it: a search for text is quick."""
    shapes = []
    for head in heads.split():
        begins = rf"{re.escape(head)}(?<![A-Za-z0-9_]{re.escape(head)})"
        shapes.append(Shape(what, head, re.compile(begins + tail, re.ASCII), fits))
    return tuple(shapes)


KEY, TOKEN, JWT, PEM = "an API key", "an access token", "a signed token", "a private key"
_WORD = rf"\w{{16,{_LONGEST}}}"
_HYPHENED = rf"[\w-]{{16,{_LONGEST}}}"

SHAPES: Final = (
    *_shape(KEY, "sk- rk-", rf"[\w-]{{12,{_LONGEST}}}", fits=_one_long_part),
    *_shape(KEY, "sk_live_ sk_test_ pk_live_ pk_test_ rk_live_ rk_test_", rf"\w{{10,{_LONGEST}}}"),
    *_shape(KEY, "whsec_", _WORD),
    *_shape(TOKEN, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", _WORD),
    *_shape(TOKEN, "glpat-", _HYPHENED),
    *_shape(
        TOKEN, "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", rf"[\w-]{{10,{_LONGEST}}}", fits=_mixed
    ),
    *_shape(KEY, "AKIA ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *_shape(KEY, "AIza", r"[\w-]{30,60}"),
    *_shape(TOKEN, "ya29.", _HYPHENED),
    *_shape(KEY, "GOCSPX-", r"[\w-]{20,60}"),
    *_shape(TOKEN, "hf_", r"[A-Za-z0-9]{20,60}"),
    *_shape(TOKEN, "npm_", r"[A-Za-z0-9]{30,60}"),
    *_shape(TOKEN, "pypi-", rf"[\w-]{{40,{_LONGEST}}}"),
    *_shape(KEY, "gsk_ xai- pplx- r8_", r"[A-Za-z0-9]{20,100}"),
    *_shape(KEY, "SG.", r"[\w-]{16,40}\.[\w-]{16,80}"),
    *_shape(TOKEN, "dop_v1_ shpat_ shpss_ dapi", r"[0-9a-f]{32,64}"),
    *_shape(TOKEN, "dbk_", r"[a-z2-7]{10,32}_[a-z2-7]{52}"),
    *_shape(TOKEN, "bot", r"\d{8,10}:AA[\w-]{30,40}"),
    *_shape(PEM, "xprv yprv zprv", r"[1-9A-HJ-NP-Za-km-z]{100,120}"),
    *_shape(JWT, "eyJ", r"(?<![.-]eyJ)[\w-]{8,4000}(?:\.[\w-]{4,4000}){1,2}"),
    *_shape(TOKEN, "hooks.slack.com/", r"(?:services|workflows)/[\w/]{12,200}"),
    *_shape(TOKEN, "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"\d{10,25}/[\w-]{20,100}"),
    # Key ids of a broker: capitals and digits; the secret that stands beside one is found by the pair.
    *_shape(KEY, "PK AK CK", r"[A-Z0-9]{18}(?:[A-Z0-9]{6})?(?![A-Za-z0-9])", fits=_mixed),
)

_SIGNS = "_-./"
BY_SIGN: Final = tuple(
    (sign, tuple(shape for shape in SHAPES if (shape.head[-1] if shape.head[-1] in _SIGNS else "") == sign))
    for sign in ("", *_SIGNS)
)
"""The shapes by the sign that their heads end with: most notes have few of them, and need no look at the heads."""

# Two of a pair may be told apart by a line, a colon or the name of the second.
BESIDE_KEY: Final = re.compile(
    r"[\s\"',;:/|=]{1,6}(?:[A-Za-z_ -]{0,24}[\s\"':=]{1,4})?([A-Za-z0-9/+]{40,44})(?![A-Za-z0-9/+])"
)
"""The secret of a key pair, right after its id."""

PEM_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
PEM_END: Final = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
