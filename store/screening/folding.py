"""Text as a reader sees it, for patterns: one width, one case, no accents, no tricks with spaces or look-alikes."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_LATIN_END = 0x250
_KEPT = 20_000
"""How many characters are remembered: more than any language has in use."""
# Letters of other scripts that look Latin.
_TWINS = dict(
    zip(
        "аеорсухіјѕԁӏвкмнтгАВЕКМНОРСТУХІЈЅαορνικτυχεΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxijsdlbkmhtrABEKMHOPCTYXIJSaopviktuxeABEZHIKMNOPTYX",
        strict=True,
    )
)
_MIXED_WORD = re.compile(r"[^\W\d_]{2,60}")
_SPACED = re.compile(r"(?<![^\W_])(?:[a-z][ .*_-]){4,200}[a-z](?![^\W_])")
_BETWEEN = re.compile(r"[ .*_-]")


class _Folds(dict[int, str]):
    """Each character's plain form, found once. By character: NFKC of a whole text is quadratic on runs of marks."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if unicodedata.category(character) in ("Cf", "Mn", "Me"):
            plain = ""
        else:
            plain = unicodedata.normalize("NFKC", character)
            if code < _LATIN_END:
                plain = "".join(
                    each
                    for each in unicodedata.normalize("NFKD", plain)
                    if each < "\u0300" or each > "\u036f"
                )
        if len(self) < _KEPT:
            self[code] = plain
        return plain


_FOLDS: Final = _Folds()


def fold(text: str) -> str:
    """The text in small plain letters, lines kept; a word that mixes scripts becomes Latin, spaced letters a word."""
    if not text.isascii():
        text = _MIXED_WORD.sub(_latin, text.translate(_FOLDS))
    return _SPACED.sub(lambda found: _BETWEEN.sub("", found[0]), text.lower())


def _latin(found: re.Match[str]) -> str:
    word = found[0]
    if word.isascii() or not any(character.isascii() for character in word):
        return word
    return "".join(_TWINS.get(character, character) for character in word)
