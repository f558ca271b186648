"""What every tier of tests shares: the event loop's backend, how hard hypothesis tries, and a desk in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

    from store.entry import Entry

# No deadline: a shared machine is slow now and then, and no test asserts a wall-clock time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "local"))

ERA_MODES = {"handshake": "legacy", "modern": "2026-07-28"}
ERROR_KEYS = {"code", "message", "stored", "retryable", "hint"}


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def strict_json(text: str) -> Any:
    """Parse as a strict reader does: no NaN, no infinity, no key twice, nothing that UTF-8 cannot carry."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), f"a key twice in {pairs}"
        return dict(pairs)

    text.encode("utf-8")
    return json.loads(text, parse_constant=pytest.fail, object_pairs_hook=once)


class InMemoryDesk:
    """One agent's server in this process, over a root on disk, with its ledger at hand."""

    def __init__(self, config: Path | None, agent: str | None, flags: dict[str, Any]) -> None:
        # Here and not above: tests of the store alone should not pay half a second for the SDK.
        from server.app import DeskServer
        from server.identity import launch_identity
        from server.settings import load_settings

        self.settings = load_settings(config=config, flags=flags, environ={})
        self.identity = launch_identity(self.settings, agent)
        self.server = DeskServer(self.settings, self.identity, transport="memory")
        self.root = self.settings.store.root

    def client(self, era: str = "modern", **options: Any) -> Client:
        from mcp import Client

        return Client(self.server, mode=ERA_MODES[era], **options)

    @staticmethod
    def body(result: CallToolResult) -> dict[str, Any]:
        """The body of a good reply, its text and structured content checked to say the same."""
        assert result.is_error is False, result.content
        (content,) = result.content
        body = strict_json(content.text)  # type: ignore[union-attr]
        assert body == result.structured_content
        return dict(body)

    @staticmethod
    def error(result: CallToolResult) -> dict[str, Any]:
        """The described error of a refused call, its shape checked."""
        assert result.is_error is True, result.content
        assert result.structured_content is None
        (content,) = result.content
        told = strict_json(content.text)  # type: ignore[union-attr]
        assert told.keys() - {"field"} == ERROR_KEYS
        assert all(isinstance(told[key], str) for key in ("code", "message", "hint"))
        assert told["stored"] in ("no", "yes", "unknown")
        assert isinstance(told["retryable"], bool)
        for leak in ("Traceback", 'File "', "/tmp", "/root", ".sqlite", ".py", "apsw", "pydantic"):
            assert leak not in content.text  # type: ignore[union-attr]
        return dict(told)

    async def call(
        self, client: Client, tool: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """A call that must be served."""
        return self.body(await client.call_tool(tool, arguments, meta=meta))  # type: ignore[arg-type]

    async def refused(
        self, client: Client, tool: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """A call that must be refused."""
        return self.error(await client.call_tool(tool, arguments, meta=meta))  # type: ignore[arg-type]

    def entries(self, event_type: str | None = None, *, run: str | None = None) -> list[Entry]:
        """The entries of the ledger (of one type), in order; none when there is no ledger yet."""
        from store import Book
        from store.errors import NotFound
        from store.rows import EntryFilter

        try:
            book = Book.open(self.root, self.identity.strategy, run, create=False)
        except NotFound:
            return []
        try:
            return book.log(EntryFilter(event_type=event_type, limit=1_000_000))
        finally:
            book.close()

    def contents(self, event_type: str, *, run: str | None = None) -> list[dict[str, Any]]:
        """The contents of the entries of one type."""
        return [json.loads(entry.content) for entry in self.entries(event_type, run=run)]


OpenDesk = Callable[..., InMemoryDesk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[OpenDesk]:
    """Open servers: `config` is the text of a file, without it one person's server; all share one root."""
    opened: list[InMemoryDesk] = []

    def start(config: str | None = None, agent: str | None = None, **flags: Any) -> InMemoryDesk:
        path = None
        if config is not None:
            path = tmp_path / f"desk{len(opened)}.toml"
            path.write_text(config, encoding="utf-8")
        desk = InMemoryDesk(path, agent, {"root": str(tmp_path / "root"), **flags})
        opened.append(desk)
        return desk

    yield start
    for desk in opened:
        desk.server.drain()


@pytest.fixture
def desk(open_desk: OpenDesk) -> InMemoryDesk:
    """The server of one person without a config file, who may do everything."""
    return open_desk()


@pytest.fixture(params=tuple(ERA_MODES))
def era(request: pytest.FixtureRequest) -> str:
    """Both protocol eras, one after the other."""
    return str(request.param)
