"""Deskbook's MCP server: identity, permission and dispatch around the store, its transports and its command."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("deskbook")
except PackageNotFoundError:
    __version__ = "0.0.0+unknown"
