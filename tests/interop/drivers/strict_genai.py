"""What google-genai makes of each schema, with every keyword it cannot carry an error."""

from __future__ import annotations

import json
import sys
from typing import Any

from google.genai import types
from google.genai._mcp_utils import mcp_to_gemini_tools
from mcp.types import Tool


def described(schema: types.Schema) -> dict[str, Any]:
    return dict(schema.model_dump(mode="json", exclude_none=True))


def convert(tools: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for tool in tools:
        for option in ("GEMINI_API", "VERTEX_AI"):
            schema = types.Schema.from_json_schema(
                json_schema=types.JSONSchema.model_validate(tool["inputSchema"] | {}),
                api_option=option,
                raise_error_on_unsupported_field=True,
            )
            made.setdefault(tool["name"], []).append(described(schema))
    for converted in mcp_to_gemini_tools([Tool.model_validate(tool) for tool in tools]):
        for declaration in converted.function_declarations or []:
            made[str(declaration.name)].append(described(declaration.parameters or types.Schema()))
    return made


if __name__ == "__main__":
    print("\n" + json.dumps(convert(json.load(sys.stdin)["tools"])))  # noqa: T201 - what it is run for
