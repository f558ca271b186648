"""From what a client sent to typed arguments: forgiving in form, strict in meaning.

Forgiven: null for anything optional, a list sent as JSON text or comma separated, a number sent as text, text
sent as a number, spaces and capitals around a listed word. Refused by name: unknown arguments (with a near
miss), values of another type, and what cannot be kept exactly (NUL, lone surrogates, NaN, Infinity).

The published schema is plain: optional arguments are just not required, no unions, no references.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from store.canonical import check_json, parse_json_text
from store.clock import parse_instant
from store.errors import InvalidInput

from .synonyms import meant

A = TypeVar("A", bound="Arguments")

# Keys that hosts are known to add to any call; they say nothing to us.
INJECTED: Final = frozenset({"task_progress"})
_LIST_EXAMPLE: Final = '["earnings", "momentum"]'
_JSON_EXAMPLE: Final = '{"close": "187.30", "source": "10-Q 2026-05-02"}'


class Arguments(BaseModel):
    """Base of every tool's arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _read_text(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value


def _read_truth(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return value


def _read_integer(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")  # noqa: TRY004 - pydantic takes it for a wrong value
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _read_list(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("broken list") from None
    pieces = (piece.strip().strip("\"'").strip() for piece in text.split(","))
    return [piece for piece in pieces if piece]


def _read_optional(value: Any) -> Any:
    """The words that models send for an absent value."""
    return None if isinstance(value, str) and value.strip().lower() in {"", "null", "none"} else value


def _read_name(value: Any) -> Any:
    """As `_read_optional`, but NULL and NONE in capitals are tickers and names like any other."""
    return None if isinstance(value, str) and value.strip() in {"", "null", "none", "None"} else value


def _read_word(value: Any) -> Any:
    found = _read_optional(value)
    return found.strip().lower() if isinstance(found, str) else found


def _read_id(value: Any) -> Any:
    found = _read_optional(value)
    return found.strip() if isinstance(found, str) else found


def _as_json_text(value: Any) -> Any:
    """JSON text stays text; an object or list sent as such becomes text, to be read in one place."""
    return json.dumps(value) if isinstance(value, dict | list) else _read_optional(value)


Text = Annotated[str, BeforeValidator(_read_text)]
OptionalText = Annotated[str | None, BeforeValidator(_read_text), BeforeValidator(_read_optional)]
OptionalName = Annotated[str | None, BeforeValidator(_read_text), BeforeValidator(_read_name)]
Query = Annotated[str | None, BeforeValidator(_read_text)]
OptionalId = Annotated[str | None, BeforeValidator(_read_id)]
Word = BeforeValidator(_read_word)
Strings = Annotated[list[str] | None, BeforeValidator(_read_list), BeforeValidator(_read_optional)]
Integer = Annotated[int | None, BeforeValidator(_read_integer), BeforeValidator(_read_optional)]
Truth = Annotated[bool | None, BeforeValidator(_read_truth), BeforeValidator(_read_optional)]
Instant = Annotated[str | None, BeforeValidator(_read_optional)]
Json = Annotated[str | None, BeforeValidator(_as_json_text)]


class WriteArguments(Arguments):
    """Base of every changing tool's arguments."""

    idempotency_key: Annotated[
        OptionalId, Field(description="Same key and arguments: same answer, stored once.")
    ] = None


def json_of(text: str | None, *, field: str) -> Any:
    """The value of a JSON-text argument; None stays None."""
    return None if text is None else parse_json_text(text, field=field, example=_JSON_EXAMPLE)


def instant_of(text: str | None, *, field: str) -> int | None:
    """Microseconds of a time argument; None stays None."""
    return None if text is None else parse_instant(text, field=field)


def read_arguments(model: type[A], sent: Mapping[str, Any]) -> A:
    """Typed arguments; raises InvalidInput that names the first argument at fault and the next step."""
    known = list(published_schema(model)["properties"])
    given = {name: value for name, value in sent.items() if name not in INJECTED}
    for name in given:
        if name not in known:
            near = meant(name, known)
            raise InvalidInput(
                f"Unknown argument '{plain_name(name)}'" + (f"; did you mean '{near}'?" if near else "."),
                field=plain_name(name),
                hint=f"This tool takes: {', '.join(known)}.",
            )
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        check_json(value, field=name)
    try:
        return model.model_validate(given)
    except ValidationError as fault:
        raise _as_invalid_input(fault, model) from None


@cache
def published_schema(model: type[Arguments]) -> dict[str, Any]:
    """The input schema in the subset that every framework converts, a tool's own arguments first."""
    full = model.model_json_schema()
    own = sorted(full["properties"].items(), key=lambda item: item[0] in WriteArguments.model_fields)
    properties = {name: _plain_property(shape) for name, shape in own}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := full.get("required"):
        schema["required"] = required
    return schema


def _plain_property(shape: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in shape.get("anyOf", ()) if choice != {"type": "null"}]
    merged = {**(choices[0] if choices else {}), **shape}
    return {name: merged[name] for name in ("type", "enum", "items", "description") if name in merged}


def _as_invalid_input(fault: ValidationError, model: type[Arguments]) -> InvalidInput:
    first = fault.errors(include_url=False, include_input=False, include_context=False)[0]
    top = str(first["loc"][0])
    field = "".join(f"[{part}]" if isinstance(part, int) else str(part) for part in first["loc"][:2])
    shape = published_schema(model)["properties"][top]
    if first["type"] == "missing":
        return InvalidInput(f"{top} is missing.", field=top, hint=f"{top}: {shape.get('description', '')}")
    if "enum" in shape:
        return InvalidInput(
            f"{top} is not one of its values.", field=top, hint=f"One of {', '.join(shape['enum'])}."
        )
    if shape["type"] == "array":
        return InvalidInput(
            f"{field} is not a list of texts.", field=field, hint=f"For example {_LIST_EXAMPLE}."
        )
    return InvalidInput(
        f"{field} must be {_article(shape['type'])}.",
        field=field,
        hint=f"{top}: {shape.get('description', '')}",
    )


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def plain_name(name: str) -> str:
    """An argument's name as sent, safe to repeat: printable and short."""
    return "".join(character if character.isprintable() else "?" for character in name[:64])
