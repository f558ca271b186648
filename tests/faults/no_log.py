"""Runs the deskbook command on a file system layer without shared memory, as on many network file systems."""

from __future__ import annotations

import sys
from pathlib import Path

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from server.cli import main


class WithoutSharedMemory(apsw.VFS):
    """SQLite's layer without locks, which knows nothing of shared memory either, as the default for every file."""

    def __init__(self) -> None:
        super().__init__("without-shared-memory", "unix-none", makedefault=True)


layer = WithoutSharedMemory()
main()
