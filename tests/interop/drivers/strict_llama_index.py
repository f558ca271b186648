"""The arguments model that llama-index makes of each schema, written out as a schema again."""

from __future__ import annotations

import json
import sys
from typing import Any

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


def convert(tools: list[dict[str, Any]]) -> dict[str, Any]:
    made = {}
    for tool in tools:
        spec = McpToolSpec(client=BasicMCPClient("none"))
        model = spec.create_model_from_json_schema(tool["inputSchema"], model_name=f"{tool['name']}_Schema")
        made[tool["name"]] = model.model_json_schema()
    return made


if __name__ == "__main__":
    print("\n" + json.dumps(convert(json.load(sys.stdin)["tools"])))  # noqa: T201 - what it is run for
