"""Every command's handler, registered by its import."""

from . import lessons, memories, order_outcomes, orders, positions
from .planning import plan
from .review import conflicts, decisions

__all__ = ["conflicts", "decisions", "lessons", "memories", "order_outcomes", "orders", "plan", "positions"]
