"""`ask`: a person is asked in the host, in both eras; a yes is the host's word and opens nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult, InputRequiredResult

from server.asking import MODERN, Asking
from store.admission import ConfirmationNeeded

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

pytestmark = pytest.mark.anyio

ASK = """
[agents.local]
profile = "solo"
[approval]
memory = "ask"
lesson = "review"
"""


class Person:
    """Answers what is asked, and remembers it."""

    def __init__(self, action: str, content: dict[str, Any] | None = None) -> None:
        self.answer = ElicitResult(action=action, content=content)  # type: ignore[arg-type]
        self.asked: list[str] = []

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return self.answer


@pytest.fixture
def asking(open_desk: OpenDesk) -> InMemoryDesk:
    return open_desk(ASK)


async def test_a_yes_keeps_the_note_as_confirmed_in_the_host(asking: InMemoryDesk, era: str) -> None:
    person = Person("accept", {"keep": True})
    async with asking.client(era, elicitation_callback=person) as client:
        written = await asking.call(client, "remember", text="keep\nthis", symbol="AAPL")
        assert written["review_state"] == "host_confirmed"
        (question,) = person.asked
        assert "about AAPL" in question
        assert "> keep\n> this" in question
        (hit,) = (await asking.call(client, "search_memory", query="keep"))["hits"]
        assert hit["trust"] == "host_confirmed"
    (content,) = asking.contents("memory.recorded")
    assert content["review_state"] == "host_confirmed"
    assert asking.entries("call.failed") == []


@pytest.mark.parametrize("answer", [("decline", None), ("accept", {"keep": False})])
async def test_a_no_keeps_nothing(asking: InMemoryDesk, era: str, answer: tuple[str, Any]) -> None:
    async with asking.client(era, elicitation_callback=Person(*answer)) as client:
        await asking.call(client, "remember_risk_note", text="so that there is a ledger")
        refused = await asking.refused(client, "remember", text="keep this")
        assert (refused["code"], refused["stored"]) == ("permission_denied", "no")
    assert asking.contents("memory.recorded") == []


async def test_no_answer_leaves_it_to_a_reviewer(asking: InMemoryDesk, era: str) -> None:
    async with asking.client(era, elicitation_callback=Person("cancel")) as client:
        written = await asking.call(client, "remember", text="keep this")
        assert written["review_state"] == "pending"


async def test_a_client_that_cannot_ask_leaves_it_to_a_reviewer(asking: InMemoryDesk, era: str) -> None:
    async with asking.client(era) as client:
        written = await asking.call(client, "remember", text="keep this")
        assert written["review_state"] == "pending"
        assert "deskbook review approve" in " ".join(written["warnings"])


async def test_nobody_is_asked_about_what_is_not_gated_or_not_valid(asking: InMemoryDesk, era: str) -> None:
    person = Person("accept", {"keep": True})
    async with asking.client(era, elicitation_callback=person) as client:
        await asking.call(client, "remember_risk_note", text="a risk")
        assert (await asking.call(client, "remember_lesson", text="a lesson"))["review_state"] == "pending"
        await asking.refused(client, "remember", text=" ")
        await asking.refused(client, "remember", text="x", nonsense="y")
        assert person.asked == []


async def test_a_repeat_is_answered_without_asking_again(asking: InMemoryDesk, era: str) -> None:
    person = Person("accept", {"keep": True})
    async with asking.client(era, elicitation_callback=person) as client:
        first = await asking.call(client, "remember", text="keep this")
        again = await asking.call(client, "remember", text="keep this")
        assert (again["id"], again["repeat"], len(person.asked)) == (first["id"], 1, 1)


async def test_a_key_sent_again_asks_nobody(asking: InMemoryDesk, era: str) -> None:
    person = Person("accept", {"keep": True})
    async with asking.client(era, elicitation_callback=person) as client:
        first = await asking.call(client, "remember", text="keep this", idempotency_key="k")
        again = await asking.call(client, "remember", text="keep this", idempotency_key="k")
        assert again == first
        assert len(person.asked) == 1


async def test_an_answer_to_another_question_counts_for_nothing(asking: InMemoryDesk) -> None:
    """A client that answers unasked, or about other words, is asked."""
    yes = ElicitResult(action="accept", content={"keep": True})
    able = SimpleNamespace(elicitation=SimpleNamespace(form={}, url=None))
    context: Any = SimpleNamespace(
        protocol_version=MODERN, input_responses={"keep": yes}, request_state=None, client_capabilities=able
    )
    asking_one = Asking(context, "remember", {"text": "one"})
    assert asking_one.standing() == "asks"
    required = await asking_one.ask(ConfirmationNeeded("memory", "one", None))
    assert isinstance(required, InputRequiredResult)
    context.request_state = required.request_state
    assert Asking(context, "remember", {"text": "one"}).standing() == "confirmed"
    assert Asking(context, "remember", {"text": "two"}).standing() == "asks"
    assert Asking(context, "remember_risk_note", {"text": "one"}).standing() == "asks"
