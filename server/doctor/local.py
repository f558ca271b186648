"""The checks of one desk on this machine, in the order in which a person would look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .bearers import check_tokens
from .configured import check_config, check_python, check_shell, check_sqlite
from .findings import Finding
from .storing import check_disk, check_ledgers, check_permissions, check_root
from .subject import Subject

Check = Callable[[Subject], Iterable[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    check_config,
    check_python,
    check_sqlite,
    check_shell,
    check_root,
    check_permissions,
    check_disk,
    check_ledgers,
    check_tokens,
)


def examine(subject: Subject) -> Iterator[Finding]:
    """What every local check found."""
    for check in CHECKS:
        yield from check(subject)
