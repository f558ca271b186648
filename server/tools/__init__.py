"""The tools an agent may call, each thin: typed arguments in, one call of the store, its reply out.

`TOOLS` is the whole list, in the order clients see it. Permission, identity, clocks, limits and errors are
not here but in `dispatch`.
"""

from types import MappingProxyType
from typing import Final

from . import clock, decisions, notes, orders, outcomes, reading, theses, upkeep
from .spec import ToolSpec

TOOLS: Final = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            *reading.TOOLS,
            *notes.TOOLS,
            *decisions.TOOLS,
            *theses.TOOLS,
            *upkeep.TOOLS,
            *orders.TOOLS,
            *outcomes.TOOLS,
            *clock.TOOLS,
        )
    }
)

__all__ = ["TOOLS", "ToolSpec"]
