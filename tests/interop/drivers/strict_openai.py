"""What openai-agents makes of each schema when asked for strict mode."""

from __future__ import annotations

import json
import sys
from typing import Any

from agents.mcp import MCPServerStdio, MCPUtil
from mcp.types import Tool


def convert(tools: list[dict[str, Any]]) -> dict[str, Any]:
    # Never connected: a converted tool only remembers whose it is.
    server = MCPServerStdio(params={"command": "none"})
    made = {}
    for tool in tools:
        function = MCPUtil.to_function_tool(Tool.model_validate(tool), server, convert_schemas_to_strict=True)
        made[function.name] = {"strict": function.strict_json_schema, "schema": function.params_json_schema}
    return made


if __name__ == "__main__":
    print("\n" + json.dumps(convert(json.load(sys.stdin)["tools"])))  # noqa: T201 - what it is run for
