"""What the tests share: one way to recover in both modes, on a clock of their own."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, settings

import rung
from rung.adapters.system.list_prices import fetch_list_prices
from rung.engine.log_switch import LOG_SWITCH
from rung.testing import FakeClock, Script, reset_process_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rung.core.policy.model_prices import ModelPrice

# A shell that starts the tests in the background has them ignore Ctrl-C, and nohup a closed terminal. They would pass
# that on to every child.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Properties hold at any speed: a slow or busy machine fails none of them. The quick tier tries a fifth of the examples.
settings.register_profile("gate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("gate"), max_examples=20)
settings.load_profile("quick" if os.environ.get("RUNG_QUICK") else "gate")

# Coverage is measured in this process. It takes time to start, so the processes that tests start are measured only
# in the folders whose conftest asks for it. The first process of a parallel run hands the variable on to its workers.
WORKER = "PYTEST_XDIST_WORKER" in os.environ
IS_MEASURED = WORKER and bool(os.environ.pop("COVERAGE_PROCESS_START", ""))
MEASURED = Path(__file__).with_name("measured")


# Whatever is collected lives until the end: garbage collection that passes over it takes a third of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Keep what was collected, the modules of all SDKs among it, out of garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _log_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what commands and libraries do to the log of recoveries in this process: they turn it off, or its logger."""
    monkeypatch.setattr(LOG_SWITCH, "is_on", True)
    logging.disable(logging.NOTSET)
    logger = logging.getLogger("rung")
    logger.disabled, logger.propagate = False, True
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session", autouse=True)
def _own_directories(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep trust decisions, keys of crews, and a journal that nobody named, out of the user's directories."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session", autouse=True)
def _prices_are_read_once() -> Iterator[None]:
    """Read the list prices of a model once: each gateway of a test would start a process for them, of 0.3 s."""
    python = sys.executable
    known: dict[str, ModelPrice | None] = {}

    def fetch(models: Sequence[str]) -> dict[str, ModelPrice | None]:
        if sys.executable != python:  # a test holds or fails the lookup
            return fetch_list_prices(models)
        if unknown := [model for model in models if model not in known]:
            known.update(fetch_list_prices(unknown))
        return {model: known[model] for model in models if model in known}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rung.wiring.prices.fetch_list_prices", fetch)
        yield


@pytest.fixture
def measured_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the coverage of the processes that a test starts, if they import Rung."""
    if IS_MEASURED:
        monkeypatch.setenv("COVERAGE_AT_IMPORT", str(MEASURED / "coverage.ini"))
        monkeypatch.setenv("PYTHONPATH", str(MEASURED), prepend=os.pathsep)


@pytest.fixture
def unmeasured_processes(measured_processes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not measure the processes of a test that sends them signals: one may leave the lock of coverage held for ever."""
    del measured_processes  # it would set the variable later
    monkeypatch.delenv("COVERAGE_AT_IMPORT", raising=False)


@pytest.fixture(autouse=True)
def fresh_process_state() -> None:
    """Start every test with a full retry budget, closed circuits and no journal of the environment, whatever ran before."""
    reset_process_state()
    os.environ.pop("RUNG_JOURNAL", None)


OUTCOME = jsonschema.Draft202012Validator(
    json.loads(resources.files("rung").joinpath("schemas/outcome.json").read_text())
)


class World:
    """A recovery in one of the two modes, with nothing shared with any other test."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.clock = FakeClock()
        self.breakers = rung.BreakerRegistry()
        self.retry_budget = rung.RetryBudget()

    def recover(self, attempt: Any, request: Any, **ports: Any) -> rung.Outcome[Any]:
        ports = {
            "clock": self.clock,
            "jitter": lambda: 0.5,
            "breakers": self.breakers,
            "retry_budget": self.retry_budget,
            **ports,
        }
        if self.mode == "sync":
            outcome = rung.recover_sync(attempt, request, **ports)
        else:
            attempt = attempt.attempt if isinstance(attempt, Script) else attempt
            outcome = asyncio.run(rung.recover(attempt, request, **ports))
        OUTCOME.validate(outcome.to_dict())
        return outcome


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)
