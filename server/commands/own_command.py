"""The words that start this very installation, wherever and with whatever PATH they are run."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def own_command() -> tuple[str, ...]:
    """`deskbook` by its absolute path, else this interpreter with the module; a host runs it elsewhere."""
    interpreter = Path(sys.executable).absolute()
    own = interpreter.with_name("deskbook.exe" if os.name == "nt" else "deskbook")
    return (str(own),) if own.exists() else (str(interpreter), "-m", "server")
