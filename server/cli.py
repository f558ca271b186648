"""The `deskbook` command: exit 0 when done, 1 when something is wrong with a ledger, 2 for wrong usage."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from store.errors import ConfigError, DeskbookError, InvalidInput

from . import __version__
from .commands import (
    adding,
    checking,
    checkpointing,
    demonstrating,
    doctoring,
    embedding,
    exporting,
    importing,
    installing,
    keeping,
    proving,
    publishing,
    reading,
    redacting,
    reviewers,
    reviewing,
    running,
    serving,
    setting_up,
    tokens,
)
from .commands.screen import plain

app = typer.Typer(
    name="deskbook",
    help="Auditable local memory for trading agents, over MCP.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deskbook {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Auditable local memory for trading agents, over MCP."""


for command in (
    setting_up.init,
    installing.install,
    installing.uninstall,
    doctoring.doctor,
    serving.serve,
    reading.status,
    checking.verify,
    checking.rebuild,
    keeping.backup,
    keeping.restore,
    redacting.redact,
    checkpointing.checkpoint,
    proving.prove,
    publishing.publish,
    reading.show,
    reading.explain,
    reading.log,
    running.leaks,
    exporting.export,
    embedding.embed,
    adding.add,
    demonstrating.demo,
):
    app.command()(command)
app.add_typer(importing.imports)
app.add_typer(running.runs)
app.add_typer(tokens.tokens)
app.add_typer(reviewing.review)
app.add_typer(reviewers.reviewers)


def main() -> None:
    """Run the command line and exit with its code; errors of ours are told without a traceback."""
    try:
        app(prog_name="deskbook")
    except DeskbookError as fault:
        where = f" ({fault.field})" if fault.field else ""
        typer.echo(f"deskbook: {plain(fault.message)}{plain(where)}", err=True)
        if fault.where is not None:
            typer.echo(f"  {plain(str(fault.where))}", err=True)
        if fault.hint:
            typer.echo(f"  {plain(fault.hint)}", err=True)
        sys.exit(2 if isinstance(fault, ConfigError | InvalidInput) else 1)
