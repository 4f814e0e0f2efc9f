"""Pydantic AI's agents on the real Temporal server, beside our plugin and with our capability."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai._agent_graph import set_agent_graph_sleep
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.durable_exec.temporal import AgentPlugin, PydanticAIPlugin, TemporalDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

import rung
import rung.testing
from rung.adapters.durable.temporal import RungPlugin, failure_of
from rung.adapters.frameworks.pydantic_ai import PydanticAIRecovery
from tests.adapters.durable import temporal_agents
from tests.adapters.durable.temporal_agents import Asking
from tests.adapters.durable.temporal_rig import Rig, waiting_activity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from temporalio.workflow import ActivityConfig

POLICY = rung.policy("call", backoff={"base": 0.01, "cap": 0.02})
OVERLOADED = [{"fault": "overloaded", "request": "1-2"}]
ONCE: ActivityConfig = {"retry_policy": RetryPolicy(maximum_attempts=1), "start_to_close_timeout": timedelta(minutes=5)}


@pytest.fixture
def lab() -> Iterator[rung.testing.Lab]:
    with rung.testing.lab() as lab:
        yield lab


def agent_of(lab: rung.testing.Lab, client: AsyncOpenAI, *capabilities: AbstractCapability[Any]) -> Agent[Any, Any]:
    model = OpenAIChatModel("any", provider=OpenAIProvider(openai_client=client))
    return Agent(model, name="counter", capabilities=list(capabilities))


async def on_temporal(
    address: str, lab: rung.testing.Lab, durability: ActivityConfig, capabilities: list[Any], use: Callable[[Any], Any]
) -> Any:
    """Run a worker with an agent of the lab, and return what `use` makes of a started workflow."""
    async with AsyncOpenAI(base_url=lab.url + "/v1", api_key="any", max_retries=0) as provider:
        agent = agent_of(lab, provider, TemporalDurability(activity_config=durability), *capabilities)
        temporal_agents.AGENT[:] = [agent]
        client = await Client.connect(address, plugins=[PydanticAIPlugin(), RungPlugin()])
        queue = f"agents-{id(agent)}-{datetime.now(UTC).timestamp()}"
        options: Any = {"workflow_runner": UnsandboxedWorkflowRunner(), "plugins": [AgentPlugin(agent)]}
        async with Worker(client, task_queue=queue, workflows=[Asking], **options):
            return await use(await Rig(client, queue).start(Asking.run))


def test_a_quota_is_not_retried_beside_pydantic_ais_plugin(temporal: str, lab: rung.testing.Lab) -> None:
    """An exhausted quota reaches the provider once under Temporal's default retries, and fails the workflow."""
    lab.use([{"fault": "quota"}])

    async def ended(handle: Any) -> WorkflowFailureError:
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
        return raised.value

    error = asyncio.run(on_temporal(temporal, lab, {"start_to_close_timeout": timedelta(minutes=5)}, [], ended))
    assert [call.status for call in lab.calls] == [429]
    assert "quota" in str(error.cause)
    assert error.cause.type == "ModelQuotaExceededError"  # rebuilt from the details we kept


def test_a_date_is_the_next_delay_beside_pydantic_ais_plugin(temporal: str, lab: rung.testing.Lab) -> None:
    """A Retry-After that is a date becomes the delay of Temporal's next attempt, although the plugin wrapped the error."""
    lab.use([{"fault": "rate_limit", "retry_after": 3600, "form": "date"}])

    async def delayed(handle: Any) -> Any:
        info = await waiting_activity(handle)
        await handle.terminate()
        return info

    info = asyncio.run(on_temporal(temporal, lab, {"start_to_close_timeout": timedelta(minutes=5)}, [], delayed))
    assert len(lab.calls) == 1  # the server keeps no more of a failure this large
    assert 3_500 < info.current_retry_interval.seconds <= 3_600


def test_our_capability_waits_by_the_workflow(temporal: str, lab: rung.testing.Lab) -> None:
    """Two overloads are waited out by two timers of the workflow, and a replay has the same ones."""
    lab.use(OVERLOADED)

    async def ended(handle: Any) -> tuple[str, Any]:
        answer = await handle.result()
        history = await handle.fetch_history()
        replayer = Replayer(
            workflows=[Asking],
            plugins=[PydanticAIPlugin(), RungPlugin()],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        await replayer.replay_workflow(history)
        return answer, history

    answer, history = asyncio.run(on_temporal(temporal, lab, ONCE, [PydanticAIRecovery(POLICY)], ended))
    assert answer == rung.testing.words(5)
    assert [call.status for call in lab.calls] == [503, 503, 200]
    timers = [event for event in history.events if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED]
    assert len(timers) == 2


class Engine(AbstractCapability[Any]):
    """Clock of a durable engine that stands still between waits."""

    def __init__(self) -> None:
        self.at, self.waits = datetime(2026, 1, 1, tzinfo=UTC), list[float]()

    def get_run_clock(self) -> Callable[[], datetime]:
        return lambda: self.at

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += timedelta(seconds=seconds)


def test_inside_a_workflow_no_clock_of_ours_waits(lab: rung.testing.Lab) -> None:
    """Waits of an hour pass in the engine's time, and the same run again waits exactly as long: no chance of ours."""
    policy = rung.policy(
        "call", backoff={"base": 3_000, "cap": 4_000}, retry_after_cap=10_000, budget={"seconds": 90_000}
    )

    async def run() -> list[float]:
        engine = Engine()
        lab.use(OVERLOADED)
        async with AsyncOpenAI(base_url=lab.url + "/v1", api_key="any", max_retries=0) as provider:
            agent = agent_of(lab, provider, engine, PydanticAIRecovery(policy))
            with set_agent_graph_sleep(engine.sleep):
                result = await agent.run("count to 5", run_id="run-1")
        assert result.output == rung.testing.words(5)
        return engine.waits

    first, again = asyncio.run(run()), asyncio.run(run())
    assert first == again
    assert len(first) == 2


def test_a_replay_in_the_same_process_starts_afresh(lab: rung.testing.Lab) -> None:
    """A second run with the id of one that failed has all its tries: the capability keeps no state between runs."""

    async def run() -> None:
        async with AsyncOpenAI(base_url=lab.url + "/v1", api_key="any", max_retries=0) as provider:
            agent = agent_of(lab, provider, PydanticAIRecovery(POLICY.replace(patience=0)))
            counts = []
            for _ in range(2):
                lab.use([{"fault": "overloaded"}])
                with pytest.raises(Exception, match="503"):
                    await agent.run("count to 5", run_id="run-1")
                counts.append(len(lab.calls))
            assert counts[0] == counts[1] > 1

    asyncio.run(run())


def test_failure_of_reads_nothing_elsewhere() -> None:
    """An error without our details has no failure."""
    assert failure_of(ValueError("x")) is None
    assert failure_of(None) is None
