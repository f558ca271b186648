"""What every tier of tests shares: the event loop's backend and how hard hypothesis tries."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No deadline: a shared machine is slow now and then, and no test asserts a wall-clock time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "local"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
