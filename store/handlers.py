"""Every command's handler, registered by its import."""

from . import lessons, memories, orders, positions
from .planning import plan

__all__ = ["lessons", "memories", "orders", "plan", "positions"]
