"""What orders and lessons went through while a demo ran, from nothing but the tool calls and their replies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .strategy import Reply, ToolCall, first_sentence

CERTAINTIES = ("acknowledged", "rejected", "unknown", "not_sent", "filled")


@dataclass(slots=True)
class Course:
    """Collects what `note` is told.

    `orders` maps each journal action to the order's name, `outcomes` to what was recorded of it, in order of the
    calls; `listed` holds those that list_unreconciled_orders showed.
    """

    orders: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, list[str]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    judged: list[tuple[str, str]] = field(default_factory=list)

    def note(self, wanted: ToolCall, reply: Reply) -> None:
        """Take in one served call."""
        given = wanted.arguments
        if wanted.tool == "record_order_intent":
            self.orders[reply["action_id"]] = given["client_order_id"]
            self.warnings += [(given["client_order_id"], text) for text in reply["warnings"]]
        elif wanted.tool == "record_order_outcome":
            self.outcomes.setdefault(given["action_id"], []).append(given["certainty"])
        elif wanted.tool == "list_unreconciled_orders":
            self.listed |= {order["action_id"] for order in reply["orders"]}
        elif wanted.tool == "validate_lesson":
            self.judged.append((given["lesson_id"], reply["status"]))

    def reconciled(self) -> dict[str, list[str]]:
        """The orders that were unknown at first and listed, by name, and what was found out about them later."""
        return {
            self.orders[action]: told[1:]
            for action, told in self.outcomes.items()
            if told[0] == "unknown" and len(told) > 1 and action in self.listed
        }

    def lines(self) -> list[str]:
        """All of it in a few lines for a person."""
        counts = Counter(certainty for told in self.outcomes.values() for certainty in told)
        told = [f"{counts[name]} {name}" for name in CERTAINTIES if counts[name]]
        lines = [
            "Orders, each written down before the broker was called",
            f"  {len(self.orders)} intents; outcomes: {', '.join(told) or 'none yet'}.",
        ]
        for name, found in self.reconciled().items():
            lines.append(
                f"  {name}: the broker did not answer, so it stayed unknown and list_unreconciled_orders showed it; "
                f"the harness asked the broker: {', then '.join(found)}."
            )
        for name, text in self.warnings[:1]:
            more = f" ({len(self.warnings)} warnings in all)" if len(self.warnings) > 1 else ""
            lines.append(f"  {name}: {first_sentence(text)}.{more}")
        if self.judged:
            verdicts = Counter(status for _, status in self.judged)
            said = ", ".join(f"{count} {status}" for status, count in sorted(verdicts.items()))
            lines.append(f"  Lessons judged by fills that the harness observed: {said}.")
        return lines
