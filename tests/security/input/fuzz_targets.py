"""Readers at the edges as properties: driven by hypothesis in the gate, and by atheris in `make fuzz`."""

from __future__ import annotations

import asyncio
import json
import tempfile
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import hypothesis
from hypothesis import strategies as st
from pydantic_core import from_json

from rung.core.crew.plan import CrewSettings, PlannedTask, checked_plan
from rung.core.domain.errors import ConfigError, RungError
from rung.core.domain.settings_schema import declared_settings
from rung.core.policy.parser import FILE_KEYS, POLICY_KEYS, parse_policy_file
from rung.core.policy.stop_settings import read_stop_settings
from rung.core.policy.templates import preset
from rung.core.text.toml_document import TomlError, check_document, parse_toml
from rung.detectors.loop_settings import loop_settings_from
from rung.hooks.agent_formats import EVENTS
from rung.hooks.handlers import handle_event
from rung.mcp.recovery_service import RecoveryService
from rung.mcp.server import make_server
from rung.service.app import make_app
from rung.service.app_context import AppContext
from rung.service.auth import Authenticator
from rung.service.replay import Replayers
from rung.service.routes.stream import EventBroadcaster
from rung.store import open_journal
from rung.wiring.policies import PolicyStore
from tests.security.input.odd_requests import FUZZING, odd_text, odd_value, requests

TOKEN = "an-administrators-token"
ADDRESS = ("127.0.0.1", 1)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="rung-fuzz-"))


# -- TOML and what is read from it --------------------------------------------------------------------


@FUZZING
@hypothesis.given(st.text(st.sampled_from("ab.=[]{}\"'#\\\n ,1_-x\0é"), max_size=200) | st.text(max_size=100))
def toml(text: str) -> None:
    """Within its limits `parse_toml` returns what the standard parser does; every refusal is a TomlError."""
    try:
        expected = tomllib.loads(text)
    except (ValueError, RecursionError):
        expected = None
    try:
        found = parse_toml(text)
    except TomlError:
        assert expected is None or text.count(".") + text.count("[") + text.count("{") > 30, text
        return
    assert repr(found) == repr(expected)  # repr: NaN is not equal to itself


_policy_values = st.recursive(
    odd_value | st.dates() | st.sampled_from(POLICY_KEYS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(POLICY_KEYS) | odd_text, inner, max_size=3)
    ),
    max_leaves=8,
)
_policy_tables = st.dictionaries(st.sampled_from(POLICY_KEYS), _policy_values, max_size=6)


@FUZZING
@hypothesis.given(st.dictionaries(st.sampled_from(FILE_KEYS), _policy_tables | _policy_values, max_size=5))
def policy(table: dict[str, Any]) -> None:
    """A policy file with any values is read, or refused by a ConfigError; nothing else is raised."""
    for read in (
        lambda: parse_policy_file(table),
        lambda: loop_settings_from(table.get("loops", {})),
        lambda: read_stop_settings(table.get("stop", {})),
    ):
        with suppress(ConfigError, TomlError):
            check_document(table)
            read()


_TASK_KEYS = [each.name for each in declared_settings(PlannedTask)]
_CREW_KEYS = [each.name for each in declared_settings(CrewSettings)]
_ids = st.sampled_from(["task-01", "task-02", "task-03", "", "../x"]) | odd_text
_plan_values = odd_value | _ids | st.lists(_ids, max_size=3)
_tasks = st.lists(st.dictionaries(st.sampled_from(_TASK_KEYS) | odd_text, _plan_values, max_size=6), max_size=4)


@FUZZING
@hypothesis.given(
    st.fixed_dictionaries(
        {}, optional={"crew": st.dictionaries(st.sampled_from(_CREW_KEYS), _plan_values, max_size=4), "tasks": _tasks}
    )
    | st.dictionaries(odd_text, _plan_values)
)
def plan(table: dict[str, Any]) -> None:
    """A crew's plan with any values is read, or refused by a ConfigError; nothing else is raised."""
    with suppress(ConfigError, TomlError):
        check_document(table)
        checked_plan(table)


# -- hooks and MCP ------------------------------------------------------------------------------------

_EVENT_KEYS = (
    "session_id", "agent_id", "prompt", "last_assistant_message", "error", "reason", "trigger", "tool_name", "tool_input",
    "tool_response", "tool_use_id", "tool_calls", "stop_hook_active", "transcript_path",
)  # fmt: skip


@st.composite
def _events(draw: st.DrawFn) -> tuple[str, bytes]:
    agent = draw(st.sampled_from(sorted(EVENTS)))
    name = draw(st.sampled_from(sorted(EVENTS[agent])) | odd_text)
    table = draw(st.dictionaries(st.sampled_from(_EVENT_KEYS), odd_value, max_size=8))
    event = {"session_id": "s", **table, "hook_event_name": name, "cwd": str(_folder())}
    text = draw(st.just(json.dumps(event)) | odd_value.map(json.dumps) | odd_text)
    return agent, text.encode("utf-8", "surrogatepass")


@FUZZING
@hypothesis.given(_events())
def hooks(event: tuple[str, bytes]) -> None:
    """Any event of a coding agent gets a JSON object, or is refused by a ValueError."""
    agent, payload = event
    with suppress(ValueError, RecursionError):
        answer, _, _ = handle_event(agent, str(_folder() / "hooks"), payload, journal="")
        assert isinstance(json.loads(answer), dict)


@cache
def _mcp_server() -> tuple[Any, list[Any]]:
    server = make_server(
        RecoveryService(open_journal(_folder() / "mcp.db"), lambda: preset("task"), jitter=lambda: 0.5)
    )
    return server, asyncio.run(server.list_tools())


@FUZZING
@hypothesis.given(st.data())
def mcp(data: st.DataObject) -> None:
    """Any call of an MCP tool gets a result, or is refused as invalid arguments or by an error of ours."""
    server, tools = _mcp_server()
    tool = data.draw(st.sampled_from(tools))
    schema = getattr(tool, "input_schema", None) or tool.inputSchema
    values = dict.fromkeys(schema.get("required", ()), odd_value | odd_text)
    others = {name: odd_value | odd_text for name in schema["properties"] if name not in values}
    drawn = data.draw(st.fixed_dictionaries(values, optional=others))
    try:
        arguments = from_json(json.dumps(drawn))
    except ValueError:  # the SDK's own reader refuses it: half a surrogate pair
        return
    try:
        asyncio.run(server.call_tool(tool.name, arguments))
    except Exception as error:
        cause = error.__cause__ or error
        assert isinstance(cause, RungError) or type(cause).__name__ in ("ToolError", "ValidationError"), repr(cause)


# -- the service's API --------------------------------------------------------------------------------


@cache
def _app() -> Any:
    journal = open_journal(_folder() / "journal.db")
    context = AppContext(
        journal=journal,
        auth=Authenticator(journal, TOKEN),
        stream=EventBroadcaster(journal),
        policies=PolicyStore(journal, parse_policy_file({})),
        replayers=Replayers(journal, []),
        journal_location="",
    )
    return make_app(context, hosts={"127.0.0.1"})


@FUZZING
@hypothesis.given(requests())
def api(request: tuple[str, str, bytes, dict[str, str]]) -> None:
    """Any request to the API is answered, and never with a fault of ours."""
    method, target, body, headers = request
    path, _, query = target.partition("?")
    raw = {"host": "127.0.0.1", "authorization": f"Bearer {TOKEN}", "content-length": str(len(body)), **headers}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"), "raw_path": path.encode(), "query_string": query.encode(),
        "root_path": "", "client": ADDRESS, "server": ADDRESS,
        "headers": [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in raw.items()],
    }  # fmt: skip
    statuses: list[int] = []
    bodies = iter([{"type": "http.request", "body": body}])

    async def receive() -> Any:
        return next(bodies, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    asyncio.run(_app()(scope, receive, send))
    assert statuses
    assert statuses[0] < 500, statuses


TARGETS = {"toml": toml, "policy": policy, "plan": plan, "hooks": hooks, "mcp": mcp, "api": api}
