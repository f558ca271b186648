"""The checks of one desk on this machine, in the order in which a person would look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .bearers import check_tokens
from .configured import check_config, check_python, check_shell, check_sqlite
from .embedding import check_embedding
from .exports import check_exports
from .findings import Finding
from .listening import check_listening
from .reviewing import check_reviewers
from .storing import check_disk, check_ledgers, check_permissions, check_root, is_folder
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
    check_exports,
    check_embedding,
    check_tokens,
    check_reviewers,
    check_listening,
)
BELOW_THE_ROOT: Final[frozenset[Check]] = frozenset(
    {check_permissions, check_disk, check_ledgers, check_exports, check_tokens}
)
"""What has nothing to look at where the root is no folder."""


def examine(subject: Subject) -> Iterator[Finding]:
    """What every local check found."""
    below = is_folder(subject.root)
    for check in CHECKS:
        if below or check not in BELOW_THE_ROOT:
            yield from check(subject)
