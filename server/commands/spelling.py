"""The errors of the store in the words that a person typed: options and arguments, and no field of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from store.errors import DeskbookError
from store.review_commands import RESOLUTIONS

_OPTIONS: Final = ("text", "tags", "note", "reason", "scope", "symbol", "agent", "review_by", "expires_at")
TYPED: Final[Mapping[str, str]] = MappingProxyType(
    {"memory_id": "ID", "flag_id": "FLAG", "resolution": "ANSWER", "shown": "--hash"}
    | {name: f"--{name.replace('_', '-')}" for name in _OPTIONS}
)
"""How a person types the fields of what is decided."""

_ANSWERS: Final = {word: word.replace("_", "-") for word in RESOLUTIONS}
# Not within an id or a path.
_WORD: Final = re.compile(r"(?<![\w/.-])[a-z]+(?:_[a-z]+)+(?![\w/])")


@contextmanager
def as_typed(names: Mapping[str, str] = TYPED) -> Iterator[None]:
    """Have an error that is raised inside name what a person typed, where it names a field."""
    try:
        yield
    except DeskbookError as error:
        field = (error.field or "").partition("[")[0]
        error.message = _spelt(error.message, field, names)
        error.hint = error.hint and _spelt(error.hint, field, names)
        error.field = names.get(field, error.field)
        raise


def _spelt(text: str, field: str, names: Mapping[str, str]) -> str:
    """The text with the names that are no words of English, and with its own field where it begins with that."""
    text = _WORD.sub(lambda found: names.get(found[0]) or _ANSWERS.get(found[0], found[0]), text)
    if field in names:
        own = rf"(?:^|(?<=\bneeds )){field}\b(?:\[\d+\])?"
        text = re.sub(own, names[field], text)
    return text
