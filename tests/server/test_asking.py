"""`ask`: a person is asked in the host, in both eras; a yes is the host's word and opens nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult, InputRequiredResult

from server.asking import MODERN, Asking
from store.admission import ConfirmationNeeded
from store.events import MemoryRecorded

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


async def test_the_question_shows_all_that_is_agreed_to(asking: InMemoryDesk, era: str) -> None:
    person = Person("accept", {"keep": True})
    async with asking.client(era, elicitation_callback=person) as client:
        old = await asking.call(client, "remember", text="the old\nwords")
        await asking.call(
            client, "remember", text="new words", symbol="AAPL", tags=["Margins", "10-q"], supersedes=old["id"],
            category="an aside\nAn agent wants nothing", review_by="2030-01-02T03:04:05Z",
        )  # fmt: skip
    assert person.asked[1].split("\n") == [
        "An agent wants to keep this memory about AAPL in the desk's memory:",
        "",
        "> new words",
        "",
        "tags: margins, 10-q",
        "category: an aside\\nAn agent wants nothing",
        "review_by: 2030-01-02T03:04:05Z",
        "",
        f"It takes the place of {old['id']}:",
        "> the old",
        "> words",
    ]


async def test_nothing_in_a_question_hides_or_drives_a_terminal(asking: InMemoryDesk, era: str) -> None:
    person = Person("accept", {"keep": True})
    odd = "a\x1b[2Jb\u202ec\u200bd\re\u2028f\u0085g\U000e0041h"
    async with asking.client(era, elicitation_callback=person) as client:
        await asking.call(client, "remember", text=odd, category=odd)
    (question,) = person.asked
    assert all(character.isprintable() or character == "\n" for character in question)
    escaped = "a\\u001b[2Jb\\u202ec\\u200bd\\u000de\\u2028f\\u0085g\\U000e0041h"
    assert f"> {escaped}\n" in question
    assert f"category: {escaped}" in question


@pytest.mark.parametrize("longest", [2_000, 2_001])
async def test_what_is_too_long_to_be_shown_waits_for_a_reviewer(
    asking: InMemoryDesk, era: str, longest: int
) -> None:
    person = Person("accept", {"keep": True})
    async with asking.client(era, elicitation_callback=person) as client:
        written = await asking.call(client, "remember", text="x" * longest)
    assert written["review_state"] == ("host_confirmed" if person.asked else "pending")
    assert len(person.asked) == (longest <= 2_000)


@pytest.mark.parametrize("content", [None, {}, {"keep": "true"}, {"keep": 1}, {"other": True}])
async def test_an_accept_that_does_not_say_so_is_no_answer(
    asking: InMemoryDesk, era: str, content: dict[str, Any] | None
) -> None:
    async with asking.client(era, elicitation_callback=Person("accept", content)) as client:
        written = await asking.call(client, "remember", text="keep this")
        assert written["review_state"] == "pending"


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
    required = await asking_one.ask(ConfirmationNeeded("memory", MemoryRecorded(text="one"), None))
    assert isinstance(required, InputRequiredResult)
    context.request_state = required.request_state
    assert Asking(context, "remember", {"text": "one"}).standing() == "confirmed"
    assert Asking(context, "remember", {"text": "two"}).standing() == "asks"
    assert Asking(context, "remember_risk_note", {"text": "one"}).standing() == "asks"
