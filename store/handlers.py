"""Every command's handler, registered by its import."""

from . import lessons, memories, order_outcomes, orders, positions
from .planning import plan

__all__ = ["lessons", "memories", "order_outcomes", "orders", "plan", "positions"]
