"""The hosts as data: one row each, and nothing about a single host anywhere else.

A place is written as a shell would read it: `~` is the home folder and `${VARIABLE:-otherwise}` a variable with
what stands for it when it is empty. A place in a project is relative to the current folder. `source` names the
host's own page that says so, and what was found beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, Literal

Format = Literal["json", "toml"]
Scope = Literal["user", "project"]
System = Literal["linux", "mac", "windows"]
Template = Mapping[str, object]


class Slot(Enum):
    """What is filled into a template: see `entries.filled`."""

    COMMAND = auto()
    ARGUMENTS = auto()
    COMMAND_LINE = auto()  # command and arguments as one list
    URL = auto()
    BEARER = auto()  # the value of an Authorization header
    VARIABLE = auto()  # the name of the variable that holds the token
    INPUT_ID = auto()
    INPUT_TEXT = auto()


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a host asks a person for: a list at the top of its file, and one item of it."""

    key: str
    item: Template


@dataclass(frozen=True, slots=True)
class Host:
    """One host.

    `reference` is how its file refers to a token, with `{variable}` or `{input}` in it; None: it cannot. `http` is
    None where its file takes servers on stdio alone, and `elsewhere` then says where others are added. `writable`
    is false for a host whose entry is only printed.
    """

    name: str
    title: str
    user: Mapping[System, str]
    project: str | None
    format: Format
    path: tuple[str, ...]
    stdio: Template
    http: Template | None
    reference: str | None
    source: str
    writable: bool = True
    elsewhere: str | None = None
    inputs: Inputs | None = None
    note: str | None = None

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes it knows; the first holds unless another is asked for.

        It is the user's own, because an entry names folders of one machine, and a project's file is shared.
        """
        return ("user", "project") if self.project else ("user",)


def _everywhere(place: str) -> Mapping[System, str]:
    return MappingProxyType({"linux": place, "mac": place, "windows": place})


def _application(below: str) -> Mapping[System, str]:
    return MappingProxyType(
        {
            "linux": f"${{XDG_CONFIG_HOME:-~/.config}}/{below}",
            "mac": f"~/Library/Application Support/{below}",
            "windows": f"${{APPDATA:-~/AppData/Roaming}}/{below}",
        }
    )


_PLAIN: Final[Template] = MappingProxyType({"command": Slot.COMMAND, "args": Slot.ARGUMENTS})
_TYPED: Final[Template] = MappingProxyType({"type": "stdio", **_PLAIN})
_HEADERS: Final[Template] = MappingProxyType({"Authorization": Slot.BEARER})
_TYPED_HTTP: Final[Template] = MappingProxyType({"type": "http", "url": Slot.URL, "headers": _HEADERS})

_ROWS: Final = (
    Host(
        name="claude-desktop",
        title="Claude Desktop",
        user=_application("Claude/claude_desktop_config.json"),
        project=None,
        format="json",
        path=("mcpServers",),
        stdio=_PLAIN,
        http=None,
        reference=None,
        elsewhere="Settings > Connectors > Add custom connector (which takes only servers that the internet reaches)",
        source="modelcontextprotocol.io/quickstart/user; support.claude.com, custom connectors using remote MCP:"
        " remote servers in the file are not connected to",
    ),
    Host(
        name="claude-code",
        title="Claude Code",
        user=_everywhere("${CLAUDE_CONFIG_DIR:-~}/.claude.json"),
        project=".mcp.json",
        format="json",
        path=("mcpServers",),
        stdio=_TYPED,
        http=_TYPED_HTTP,
        reference="${{{variable}}}",
        source="code.claude.com/docs/en/mcp: scopes, environment variable expansion",
    ),
    Host(
        name="cursor",
        title="Cursor",
        user=_everywhere("~/.cursor/mcp.json"),
        project=".cursor/mcp.json",
        format="json",
        path=("mcpServers",),
        stdio=_PLAIN,
        http=MappingProxyType({"url": Slot.URL, "headers": _HEADERS}),
        reference="${{env:{variable}}}",
        source="cursor.com/docs/mcp: configuration locations, config interpolation",
    ),
    Host(
        name="vscode",
        title="VS Code",
        user=_application("Code/User/mcp.json"),
        project=".vscode/mcp.json",
        format="json",
        path=("servers",),
        stdio=_TYPED,
        http=_TYPED_HTTP,
        reference="${{input:{input}}}",
        inputs=Inputs(
            key="inputs",
            item=MappingProxyType(
                {
                    "type": "promptString",
                    "id": Slot.INPUT_ID,
                    "description": Slot.INPUT_TEXT,
                    "password": True,
                }
            ),
        ),
        source="code.visualstudio.com/docs/copilot/reference/mcp-configuration",
    ),
    Host(
        name="codex",
        title="Codex",
        user=_everywhere("${CODEX_HOME:-~/.codex}/config.toml"),
        project=".codex/config.toml",
        format="toml",
        path=("mcp_servers",),
        stdio=_PLAIN,
        http=MappingProxyType({"url": Slot.URL, "bearer_token_env_var": Slot.VARIABLE}),
        reference="{variable}",
        source="developers.openai.com/codex/mcp: no token in the file; a project's file counts once trusted",
    ),
    Host(
        name="gemini-cli",
        title="Gemini CLI",
        user=_everywhere("~/.gemini/settings.json"),
        project=".gemini/settings.json",
        format="json",
        path=("mcpServers",),
        stdio=_PLAIN,
        http=MappingProxyType({"httpUrl": Slot.URL, "headers": _HEADERS}),
        reference="${{{variable}}}",
        writable=False,
        source="github.com/google-gemini/gemini-cli docs/tools/mcp-server.md, docs/cli/configuration.md",
    ),
    Host(
        name="opencode",
        title="OpenCode",
        user=_everywhere("${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json"),
        project="opencode.json",
        format="json",
        path=("mcp",),
        stdio=MappingProxyType({"type": "local", "command": Slot.COMMAND_LINE, "enabled": True}),
        http=MappingProxyType(
            {"type": "remote", "url": Slot.URL, "headers": _HEADERS, "oauth": False, "enabled": True}
        ),
        reference="{{env:{variable}}}",
        writable=False,
        source="opencode.ai/v1/docs/mcp-servers, and opencode.ai/docs/mcp-servers for version 2",
        note='OpenCode 2 wants the entry under "mcp": { "servers": { ... } } and without "enabled".',
    ),
    Host(
        name="windsurf",
        title="Windsurf",
        user=_everywhere("~/.codeium/windsurf/mcp_config.json"),
        project=None,
        format="json",
        path=("mcpServers",),
        stdio=_PLAIN,
        http=MappingProxyType({"serverUrl": Slot.URL, "headers": _HEADERS}),
        reference="${{env:{variable}}}",
        writable=False,
        source="docs.windsurf.com/windsurf/cascade/mcp: config interpolation",
    ),
    Host(
        name="zed",
        title="Zed",
        user=MappingProxyType(
            {
                "linux": "${XDG_CONFIG_HOME:-~/.config}/zed/settings.json",
                "mac": "~/.config/zed/settings.json",
                "windows": "${APPDATA:-~/AppData/Roaming}/Zed/settings.json",
            }
        ),
        project=".zed/settings.json",
        format="json",
        path=("context_servers",),
        stdio=MappingProxyType({"source": "custom", **_PLAIN}),
        http=MappingProxyType({"source": "custom", "url": Slot.URL, "headers": _HEADERS}),
        reference=None,
        writable=False,
        source="zed.dev/docs/ai/mcp; github.com/zed-industries/zed/issues/60459: no variable is read in a header",
    ),
)

HOSTS: Final[Mapping[str, Host]] = MappingProxyType({host.name: host for host in _ROWS})
"""Every host by its name."""
