"""The commands of a person: each module adds its own to the one typer application in `cli`."""
