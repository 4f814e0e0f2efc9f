"""Requests between every two wires: any request becomes one that the other provider accepts, and says the same."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.wires.translation.conversation import Conversation, Family
from rung.wires.translation.registry import TRANSLATED_WIRES, translator_of
from rung.wires.translation.tool_names import ToolNames
from tests.gateway.cross_wire import chat_client, messages_client, responses_client
from tests.wires.translation import chat_bodies, gemini_bodies, responses_bodies
from tests.wires.translation.anthropic_types import values_of
from tests.wires.translation.neutral_conversations import foreign_conversations
from tests.wires.translation.said import Saying, said_in
from tests.wires.translation.talks import TALKS
from tests.wires.translation.upstream_rules import check_request

TRANSLATORS = {name: translator_of(name) for name in TRANSLATED_WIRES}
BODIES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "messages": values_of(MessageCreateParamsNonStreaming),
    "chat": chat_bodies.BODIES,
    "responses": responses_bodies.REQUEST,
    "gemini": gemini_bodies.REQUESTS,
}
CLIENTS: dict[str, Any] = {"messages": messages_client, "chat": chat_client, "responses": responses_client}
EACH_PAIR = pytest.mark.parametrize(
    ("source", "target"), [(source, target) for source in TRANSLATORS for target in TRANSLATORS if source != target]
)
EXAMPLES = 500 if os.environ.get("RUNG_MATRIX") else 15
SETTINGS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def sent(conversation: Conversation) -> Conversation:
    """The conversation as the gateway gives it to the writer of the upstream's wire."""
    return ToolNames(conversation).sent(replace(conversation, model="some-model"))


@EACH_PAIR
@SETTINGS
@given(data=st.data())
def test_any_request_is_accepted(source: str, target: str, data: st.DataObject) -> None:
    """Whatever a client's wire can say becomes a request that the other provider accepts."""
    read = TRANSLATORS[source].read_request(data.draw(BODIES[source]))
    check_request(target, TRANSLATORS[target].write_request(sent(read)).body)


@EACH_PAIR
@SETTINGS
@given(data=st.data())
def test_any_conversation_is_accepted(source: str, target: str, data: st.DataObject) -> None:
    """So does a conversation that no good client would send: results without calls, ids twice, nothing to say."""
    conversation = data.draw(foreign_conversations(Family(TRANSLATORS[source].family)))
    check_request(target, TRANSLATORS[target].write_request(sent(conversation)).body)


@pytest.mark.parametrize(
    ("source", "target"), [(source, target) for source in CLIENTS for target in TRANSLATORS if source != target]
)
@SETTINGS
@given(talk=TALKS)
def test_the_other_provider_reads_the_same(source: str, target: str, talk: Any) -> None:
    """A good request says the same in the other wire: texts, calls, results, media, tools and limits, or it is named."""
    read = TRANSLATORS[source].read_request(CLIENTS[source].request(talk))
    written = TRANSLATORS[target].write_request(sent(read))
    check_request(target, written.body)
    before: Saying = said_in(read)
    after = said_in(TRANSLATORS[target].read_request(written.body))
    for name, value in before._asdict().items():
        assert getattr(after, name) == value or name in written.dropped, (name, written.dropped)
