"""Each adapter in its real framework, against the lab."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

import rung
import rung.testing
from rung.core.domain import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

POLICY = rung.policy("call", backoff={"base": 0.01, "cap": 0.02})
OVERLOADED = [{"fault": "overloaded", "request": "1-2"}]
MESSAGES: Any = [{"role": "user", "content": "count to 5"}]


@pytest.fixture
def lab() -> Iterator[rung.testing.Lab]:
    with rung.testing.lab() as lab:
        yield lab


class Sink:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event], /) -> None:
        self.events += events


def statuses(lab: rung.testing.Lab) -> list[int]:
    return [call.status for call in lab.calls]


# -- anthropic ----------------------------------------------------------------------------------------


def anthropic_client(lab: rung.testing.Lab, policy: Any = POLICY, **ports: Any) -> Any:
    anthropic = pytest.importorskip("anthropic")
    from rung.adapters.frameworks.anthropic_middleware import AnthropicRecoveryMiddleware

    return anthropic.Anthropic(
        base_url=lab.url, api_key="any", max_retries=0, middleware=[AnthropicRecoveryMiddleware(policy, **ports)]
    )


def test_anthropic_repeats_and_tells(lab: rung.testing.Lab) -> None:
    """Two overloads are waited out under one call, and every failure is an event."""
    lab.use(OVERLOADED)
    told: list[Any] = []
    client = anthropic_client(lab, listeners=[lambda event, incident: told.append(event)])
    message = client.messages.create(model="any", max_tokens=100, messages=MESSAGES)
    assert message.content[0].text == rung.testing.words(5)
    assert statuses(lab) == [529, 529, 200]
    assert sum(isinstance(event, ev.AttemptFailed) for event in told) == 2


def test_anthropic_hands_over_to_another_model(lab: rung.testing.Lab) -> None:
    """A model that stays overloaded is left for the next one of the policy."""
    lab.use({"rules": [{"fault": "overloaded", "model": "small"}]})
    client = anthropic_client(
        lab, POLICY.replace(models=(rung.policies.Model(name="small"), rung.policies.Model(name="large")))
    )
    message = client.messages.create(model="small", max_tokens=100, messages=MESSAGES)
    assert message.model == "large"
    assert statuses(lab) == [529] * 4 + [200]


def test_anthropic_raises_its_own_error(lab: rung.testing.Lab) -> None:
    """What cannot be recovered is the SDK's own exception, after one request."""
    anthropic = pytest.importorskip("anthropic")
    lab.use([{"fault": "unauthorized"}])
    with pytest.raises(anthropic.AuthenticationError):
        anthropic_client(lab).messages.create(model="any", max_tokens=100, messages=MESSAGES)
    assert statuses(lab) == [401]


def test_anthropic_awaited_and_streamed(lab: rung.testing.Lab) -> None:
    """The asynchronous client and a stream recover before the first token."""
    anthropic = pytest.importorskip("anthropic")
    from rung.adapters.frameworks.anthropic_middleware import AnthropicRecoveryMiddleware

    lab.use(OVERLOADED)

    async def ask() -> str:
        async with (
            anthropic.AsyncAnthropic(
                base_url=lab.url, api_key="any", max_retries=0, middleware=[AnthropicRecoveryMiddleware(POLICY)]
            ) as client,
            client.messages.stream(model="any", max_tokens=100, messages=MESSAGES) as stream,
        ):
            return str(await stream.get_final_text())

    assert asyncio.run(ask()) == rung.testing.words(5)
    assert statuses(lab) == [529, 529, 200]


# -- httpx, httpx2 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_a_transport_recovers_any_client(lab: rung.testing.Lab, name: str) -> None:
    """Sync and async clients of both packages get the good answer; a refusal comes back as it was."""
    package = pytest.importorskip(name)
    from rung.adapters.frameworks.httpx_transport import recovering

    body = {"model": "any", "max_tokens": 50, "messages": MESSAGES}
    lab.use(OVERLOADED)
    with package.Client(transport=recovering(package.HTTPTransport(), POLICY), base_url=lab.url) as client:
        assert client.post("/v1/messages", json=body).status_code == 200
    assert statuses(lab) == [529, 529, 200]

    async def ask() -> int:
        transport = recovering(package.AsyncHTTPTransport(), POLICY)
        async with package.AsyncClient(transport=transport, base_url=lab.url) as client:
            return int((await client.post("/v1/messages", json=body)).status_code)

    lab.use(OVERLOADED)
    assert asyncio.run(ask()) == 200
    lab.use([{"fault": "bad_request"}])
    assert asyncio.run(ask()) == 400
    assert statuses(lab) == [400]


def test_openai_through_the_transport(lab: rung.testing.Lab) -> None:
    """OpenAI's client, its own retries off, survives two overloads."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    from rung.adapters.frameworks.httpx_transport import recovering

    lab.use(OVERLOADED)
    with httpx2.Client(transport=recovering(httpx2.HTTPTransport(), POLICY)) as http:
        client = openai.OpenAI(base_url=lab.url + "/v1", api_key="any", max_retries=0, http_client=http)
        answer = client.chat.completions.create(model="any", messages=MESSAGES)
    assert answer.choices[0].message.content == rung.testing.words(5)


def test_what_is_no_transport_is_said() -> None:
    """Something else than a transport is a mistake that names what is allowed."""
    from rung.adapters.frameworks.httpx_transport import recovering

    with pytest.raises(TypeError, match="httpx or httpx2"):
        recovering(object())


# -- OpenAI Agents --------------------------------------------------------------------------------------


def test_openai_agents_repeat_and_end_honestly(lab: rung.testing.Lab) -> None:
    """The runner repeats what the ladder repeats, and the turn limit gives a partial result instead of an exception."""
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    from rung.adapters.frameworks.openai_agents import error_handlers, retry_settings

    agents.set_tracing_disabled(True)

    @agents.function_tool  # type: ignore[untyped-decorator]  # imported by name
    def look(path: str) -> str:
        """Look at a path."""
        return "nothing there"

    async def run(**options: Any) -> Any:
        async with openai.AsyncOpenAI(base_url=lab.url + "/v1", api_key="any", max_retries=0) as client:
            agent = agents.Agent(
                name="a",
                tools=[look],
                model=agents.OpenAIChatCompletionsModel("any", client),
                model_settings=agents.ModelSettings(retry=retry_settings(POLICY)),
            )
            return await agents.Runner.run(agent, "count to 5", error_handlers=error_handlers(POLICY), **options)

    lab.use(OVERLOADED)
    assert asyncio.run(run()).final_output == rung.testing.words(5)
    assert statuses(lab) == [503, 503, 200]
    lab.use({"turns": [{"tool": "look", "input": {"path": "x"}}] * 9})
    partial = asyncio.run(run(max_turns=3)).final_output
    assert partial.startswith("PARTIAL (turns_exhausted)")
    assert "nothing there" in partial
    lab.use([{"fault": "unauthorized"}])
    with pytest.raises(openai.AuthenticationError):
        asyncio.run(run())
    assert statuses(lab) == [401]


# -- LangChain, LangGraph -------------------------------------------------------------------------------


def langchain_agent(lab: rung.testing.Lab, tools: list[Any]) -> Any:
    agents, chat = pytest.importorskip("langchain.agents"), pytest.importorskip("langchain_openai")
    from rung.adapters.frameworks.langchain_middleware import LangChainRecoveryMiddleware

    model = chat.ChatOpenAI(model="any", base_url=lab.url + "/v1", api_key="any", max_retries=0)
    return agents.create_agent(model, tools=tools, middleware=[LangChainRecoveryMiddleware(POLICY)])


def test_langchain_repeats_and_tells_the_model_of_tools(lab: rung.testing.Lab) -> None:
    """Overloads are waited out; a failing tool is a message with advice, at the third time a new plan, at the eighth the end."""

    def look(path: str) -> str:
        """Look at a path."""
        raise FileNotFoundError(2, "No such file or directory", path)

    agent = langchain_agent(lab, [look])
    lab.use(
        {"rules": OVERLOADED, "turns": [{"tool": "look", "input": {"path": "/x"}}] * 8 + [{"text": "It is not there."}]}
    )
    messages = agent.invoke({"messages": MESSAGES})["messages"]
    told = [message.content for message in messages if message.type == "tool"]
    assert len(told) == 8
    assert "not where it was looked for" in told[0]
    assert "repeated 3 times" in told[2]
    assert "last turn" in told[7]
    assert not [text for text in told if "The task" in text]
    assert messages[-1].content == "It is not there."
    assert statuses(lab)[:3] == [503, 503, 200]


def test_langchain_lets_interrupts_pass(lab: rung.testing.Lab) -> None:
    """A tool that interrupts the graph is not taken for one that fails."""
    types = pytest.importorskip("langgraph.types")
    checkpoint = pytest.importorskip("langgraph.checkpoint.memory")
    agents, chat = pytest.importorskip("langchain.agents"), pytest.importorskip("langchain_openai")
    from rung.adapters.frameworks.langchain_middleware import LangChainRecoveryMiddleware

    def approve() -> str:
        """Ask a person."""
        return str(types.interrupt("may I?"))

    lab.use({"turns": [{"tool": "approve", "input": {}}, {"text": "Thanks."}]})
    model = chat.ChatOpenAI(model="any", base_url=lab.url + "/v1", api_key="any", max_retries=0)
    agent = agents.create_agent(
        model, [approve], middleware=[LangChainRecoveryMiddleware(POLICY)], checkpointer=checkpoint.InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    assert agent.invoke({"messages": MESSAGES}, thread)["__interrupt__"][0].value == "may I?"
    assert agent.invoke(types.Command(resume="yes"), thread)["messages"][-1].content == "Thanks."


class GraphState(TypedDict, total=False):
    tries: int
    outcome: dict[str, Any]


def test_langgraph_repeats_what_helps_and_ends_partial() -> None:
    """A 429 is repeated, a 401 is not; when it cannot be done the state holds a partial outcome."""
    graph = pytest.importorskip("langgraph.graph")
    from rung.adapters.frameworks.langgraph import end_partial, retry_policy

    def run(status: int) -> tuple[Any, int]:
        tries: list[int] = []

        def ask(state: GraphState) -> GraphState:
            tries.append(1)
            if status == 429 and len(tries) == 3:
                return {"tries": 3}
            raise rung.testing.HttpError(status, "no")

        made = graph.StateGraph(GraphState)
        made.add_node("ask", ask, retry_policy=retry_policy(POLICY), error_handler=end_partial)
        made.add_edge(graph.START, "ask")
        state = made.compile().invoke({"tries": 0})
        return state, len(tries)

    state, tries = run(429)
    assert (state, tries) == ({"tries": 3}, 3)
    state, tries = run(401)
    assert tries == 1
    assert state["outcome"]["status"] == "partial"
    assert state["outcome"]["errorType"] == "auth_error"


# -- Pydantic AI ----------------------------------------------------------------------------------------


def test_pydantic_ai_repeats_and_tells_the_model_of_tools(lab: rung.testing.Lab) -> None:
    """Overloads are waited out inside the request, whose incident ends as recovered; a failing tool is advice for the model."""
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    openai = pytest.importorskip("openai")
    from rung.adapters.frameworks.pydantic_ai import PydanticAIRecovery

    sink = Sink()

    async def run() -> Any:
        def look(path: str) -> str:
            """Look at a path."""
            raise FileNotFoundError(2, "No such file or directory", path)

        async with openai.AsyncOpenAI(base_url=lab.url + "/v1", api_key="any", max_retries=0) as client:
            model = models.OpenAIChatModel("any", provider=providers.OpenAIProvider(openai_client=client))
            agent = pydantic_ai.Agent(
                model, tools=[look], capabilities=[PydanticAIRecovery(POLICY, journal=sink)], retries=5
            )
            return await agent.run("count to 5")

    lab.use({"rules": OVERLOADED, "turns": [{"tool": "look", "input": {"path": "/x"}}, {"text": "It is not there."}]})
    assert asyncio.run(run()).output == "It is not there."
    assert statuses(lab)[:3] == [503, 503, 200]
    assert isinstance(sink.events[-1], ev.AttemptSucceeded)
    assert "not where it was looked for" in str(lab.calls[-1].json["messages"])
    lab.use([{"fault": "unauthorized"}])
    with pytest.raises(pydantic_ai.exceptions.ModelHTTPError):
        asyncio.run(run())
    assert statuses(lab) == [401]


def test_pydantic_ai_ends_partial(lab: rung.testing.Lab) -> None:
    """With `partial`, a run that cannot go on ends with what its tools had found; promised types and misuse stay errors."""
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    openai = pytest.importorskip("openai")
    from rung.adapters.frameworks.pydantic_ai import PydanticAIRecovery

    def look(at: str) -> str:
        return f"seven at {at}"

    async def ask(output_type: Any) -> Any:
        async with openai.AsyncOpenAI(base_url=f"{lab.url}/v1", api_key="any", max_retries=0) as client:
            model = models.OpenAIChatModel("any", provider=providers.OpenAIProvider(openai_client=client))
            capability = PydanticAIRecovery(POLICY, partial=True)
            agent = pydantic_ai.Agent(model, tools=[look], capabilities=[capability], output_type=output_type)
            return (await agent.run("look at it")).output

    script = {
        "turns": [{"tool": "look", "input": {"at": "noon"}}],
        "rules": [{"fault": "unauthorized", "request": "2-9"}],
    }
    lab.use(script)
    said = asyncio.run(ask(str))
    assert said.startswith("PARTIAL: auth_error")
    assert "- found: seven at noon" in said
    lab.use([{"fault": "unauthorized"}])
    with pytest.raises(pydantic_ai.exceptions.ModelHTTPError):
        asyncio.run(ask(int))


# -- Claude Agent SDK -----------------------------------------------------------------------------------


def test_the_claude_agent_sdk_is_told_at_three(tmp_path: Path) -> None:
    """With our hooks in its options, the real agent hears of a repeated failure in its own session."""
    sdk = pytest.importorskip("claude_agent_sdk")
    from rung.hooks.sdk import hooks

    look = {"tool": "Bash", "input": {"command": "ls /nowhere/at/all"}}

    async def run(lab: rung.testing.Lab) -> None:
        env = {
            "ANTHROPIC_BASE_URL": lab.url, "ANTHROPIC_API_KEY": "sk-ant-dummy", "HOME": str(tmp_path),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        }  # fmt: skip
        options = sdk.ClaudeAgentOptions(
            hooks=hooks(str(tmp_path / "hooks")),
            cwd=str(tmp_path),
            env=env,
            allowed_tools=["Bash"],
            model="claude-sonnet-4-5",
        )
        async with sdk.ClaudeSDKClient(options=options) as client:
            await client.query("do it")
            async for _ in client.receive_response():
                pass

    with rung.testing.lab(script={"turns": [look] * 3 + [{"text": "It is not there."}]}) as lab:
        asyncio.run(run(lab))
        heard = [str(call.json["messages"][-1]) for call in lab.calls if call.json.get("tools")]
    assert ["make a new plan" in text for text in heard] == [False, False, False, True]
