# ruff: noqa: INP001 - an example beside the configs, not a package
"""Give a Lumibot agent Deskbook in place of Lumibot's own memory. An example to copy.

Start the server once, beside the strategy. With this in backtest.toml the agent's clock is simulated:

    [agents.trader]
    profile = "trader"
    token_env = "DESKBOOK_TRADER_TOKEN"
    clock = { mode = "simulated", inherit = "live" }

    export DESKBOOK_TRADER_TOKEN=...        # at least 20 characters, the same for server and strategy
    deskbook serve --config backtest.toml --transport http --port 8765

The tools named as Lumibot's own replace those. Lumibot opens a session of its own for every call and reads the
headers anew each time, so the time and the run travel there, where the model cannot reach them:

    class Trader(Strategy):
        def initialize(self):
            self.desk = deskbook("http://127.0.0.1:8765/mcp")
            self.agents.create(name="trader", model=MODEL, mcp_servers=[self.desk])

        def on_trading_iteration(self):
            stamp(self.desk, "run-1", self.get_datetime())  # only in a backtest
            self.agents["trader"].run()

Live, the agent's clock in the config is live too and nothing is stamped. Written for Lumibot 4.6.
"""

from __future__ import annotations

from datetime import datetime

from lumibot.components.agents import MCPServer

REPLACING = (
    "remember",
    "search_memory",
    "remember_proposal",
    "remember_risk_note",
    "remember_decision",
    "remember_lesson",
    "open_thesis",
    "update_thesis",
    "close_thesis",
)
MORE = (
    "get_memory",
    "get_memory_state",
    "resolve_memory",
    "flag_memory",
    "record_order_intent",
    "record_order_outcome",
    "list_unreconciled_orders",
    "validate_lesson",
)


BEARER_VARIABLE = "DESKBOOK_TRADER_TOKEN"


def deskbook(
    url: str, *, tools: tuple[str, ...] = REPLACING + MORE, token_env: str = BEARER_VARIABLE
) -> MCPServer:
    """Deskbook at a URL; the agent may call these tools and no others. The token is read from the environment.

    The transport must be named: Lumibot's default for a URL speaks no MCP.
    """
    return MCPServer(
        name="deskbook",
        url=url,
        transport="streamable_http",
        exposed_tools=list(tools),
        auth_token_env=token_env,
        headers={},
    )


def stamp(server: MCPServer, run: str, now: datetime, session: str | None = None) -> None:
    """Let every call from here on carry this time of this run; `now` has an offset, and never goes back in a run.

    All calls of a run count as one session, unless another name is given for it.
    """
    if now.utcoffset() is None:
        raise ValueError(f"{now} names no instant; give it an offset, as self.get_datetime() does.")
    server.headers.update(
        {
            "Deskbook-Run": run,
            "Deskbook-Now": now.isoformat(),
            "Deskbook-Session": session or run,
            "Deskbook-Model-Call": f"{run}/{now.isoformat()}",
        }
    )
