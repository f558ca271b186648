"""What google-adk declares of each tool to Gemini, as a schema of its own and as plain JSON schema."""

from __future__ import annotations

import json
import sys
from typing import Any

from google.adk.tools._gemini_schema_util import _to_gemini_schema
from google.adk.tools.mcp_tool.mcp_session_manager import MCPSessionManager, StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from mcp import StdioServerParameters
from mcp.types import Tool


def convert(tools: list[dict[str, Any]]) -> dict[str, Any]:
    parameters = StdioConnectionParams(server_params=StdioServerParameters(command="none"))
    sessions = MCPSessionManager(connection_params=parameters)
    made: dict[str, Any] = {}
    for tool in tools:
        schema = _to_gemini_schema(tool["inputSchema"])
        declared = McpTool(
            mcp_tool=Tool.model_validate(tool), mcp_session_manager=sessions
        )._get_declaration()
        plain = declared.parameters_json_schema or declared.parameters.model_dump(
            mode="json", exclude_none=True
        )
        made[tool["name"]] = [schema.model_dump(mode="json", exclude_none=True), plain]
    return made


if __name__ == "__main__":
    print("\n" + json.dumps(convert(json.load(sys.stdin)["tools"])))  # noqa: T201 - what it is run for
