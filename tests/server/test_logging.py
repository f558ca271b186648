"""What is logged of others: never the headers of an embedding address, which may send a key back."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from server.sdk import log_to_stderr


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.usefixtures("logging_as_before")
def test_the_http_library_tells_nothing_of_headers_even_where_all_is_logged() -> None:
    log_to_stderr(logging.DEBUG)
    assert not logging.getLogger("httpcore2.http11").isEnabledFor(logging.DEBUG)
    assert logging.getLogger("server").isEnabledFor(logging.DEBUG)
