"""Crews over HTTP: what is shown is what the table has; what a person does is done once, by the table's rules, on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rung.core.crew.contract import ASKS_PREFIX, HAND_OVER_PREFIX, PERSON, STOP_KEY
from rung.core.crew.pool import Pool, PoolState
from rung.service.crew_tables import CrewTables
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.conftest import Running


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """Two crews: one at work, and one whose table is not there yet."""
    return [str(tmp_path / "move.db"), str(tmp_path / "later.db")]


@pytest.fixture
def table(places: list[str]) -> Iterator[CrewTable]:
    """The crew at work: one task errs, one works, one asks, one waits."""
    with CrewTable.open(places[0], create=True) as opened:
        for number in range(1, 5):
            opened.add_task(NewTask(task_id=f"task-{number:02}", instruction="do it", title=f"work {number}"))
        opened.report_error(opened.claim("task-01", "one", "worker-one"), "it broke")
        opened.heartbeat(opened.claim("task-02", "two", "worker-two"), progress="half of it")
        opened.request_review(opened.claim("task-03", "three"), "Summary: done", checkpoint=1)
        opened.update_columns("task-03", note=f"{ASKS_PREFIX}shall it pass?")
        yield opened


PATH = "/api/crews/move/tasks"


def test_a_crew_is_shown_with_what_needs_a_person_first(service: Running, table: CrewTable) -> None:
    """Counts, leaders, and the tasks page by page; one that is not there yet says so and hides nothing."""
    one, other = service.get("/api/crews")
    assert (one["name"], one["tasks"], one["forPerson"]) == ("move", 4, 1)
    assert one["counts"] == {"watching": 1, "working": 1, "needs_review": 1, "error": 1}
    assert one["conductor"]["state"] == "watching"
    assert "no such file" in other["trouble"]
    first = service.get("/api/tasks", crew="move", limit=3)
    assert [row["id"] for row in first["items"]] == ["task-03", "task-01", "task-02"]
    assert first["items"][2]["progress"] == "half of it"
    rest = service.get("/api/tasks", crew="move", limit=3, cursor=first["nextCursor"])
    assert ([row["id"] for row in rest["items"]], rest["nextCursor"]) == (["task-04"], None)
    assert [row["id"] for row in service.get("/api/tasks", crew="move", needsPerson=True)["items"]] == ["task-03"]


def test_a_task_is_shown_whole(service: Running, table: CrewTable) -> None:
    """What was said, who was started, and what may be done now, with the mark by which an act is guarded."""
    table.record_launch("one", "task-01", ("an", "agent"))
    answer = service.admin.get(f"{PATH}/task-01")
    task = answer.json()
    assert answer.headers["etag"] == '"1-error"'
    assert (task["version"], task["lastError"], task["errorTries"]) == ("1-error", "it broke", 1)
    assert task["can"] == ["tell", "fix", "exit"]
    assert [one["kind"] for one in task["messages"]] == ["instruction", "error"]
    assert task["workers"][0]["command"] == ["an", "agent"]
    newest = task["messages"][-1]["id"]
    assert service.get(f"{PATH}/task-01/messages", after=newest) == []


@pytest.mark.parametrize(
    ("task", "act", "state"),
    [
        ("task-01", "fix", "fix_proposed"),
        ("task-03", "approve", "review_approved"),
        ("task-03", "reject", "review_failed"),
        ("task-02", "exit", "exited"),
    ],
)
def test_an_answer_reaches_the_table_once(service: Running, table: CrewTable, task: str, act: str, state: str) -> None:
    """State and message; the same key again changes nothing; the trail has it."""
    seen = service.get(f"{PATH}/{task}")["version"]
    for _ in range(2):
        headers = {"If-Match": f'"{seen}"', "Idempotency-Key": "k-1"}
        done = service.post(f"{PATH}/{task}/{act}", {"words": "so it is"}, 200, **headers)
        assert done["note"] == f"{task} is now {state}"
    assert table.require_task(task).state == state
    assert [one.message for one in table.messages(task)].count("so it is") == 1
    entry = service.get("/api/audit")[0]
    assert (entry["action"], entry["subject"], entry["detail"]["words"]) == (act, f"crew/move/{task}", "so it is")


def test_a_task_that_was_given_up_begins_again(service: Running, table: CrewTable) -> None:
    """It is in the inbox, and one act takes it out of there."""
    table.hand_off(table.claim("task-04", "four"), "HANDOFF: tired")
    table.update_columns("task-04", outcome="escalated", note="three deaths")
    waiting = [item for item in service.get("/api/inbox") if item["kind"] == "task"]
    assert {item["task"] for item in waiting} == {"move/task-03", "move/task-04"}
    seen = service.get(f"{PATH}/task-04")["version"]
    service.post(f"{PATH}/task-04/reset", {"words": "mind the door"}, 200, **{"If-Match": f'"{seen}"'})
    assert table.require_task("task-04").state == "watching"
    assert [item["task"] for item in service.get("/api/inbox") if item["kind"] == "task"] == ["move/task-03"]


def test_words_need_no_mark_and_come_from_a_person(service: Running, table: CrewTable) -> None:
    """Saying something decides nothing."""
    service.post(f"{PATH}/task-02/tell", {"words": "mind the tests"})
    last = table.messages("task-02")[-1]
    assert (last.from_session, last.message) == (PERSON, "mind the tests")


def test_a_pool_is_shown_and_woken(service: Running, table: CrewTable) -> None:
    """A closed pool is on the crew's page and in the inbox, with its end; waking it is done once and on record."""
    table.change_pool("default", lambda _: parked(1_800_000_000.0))
    crew = service.get("/api/crews/move")
    assert crew["pools"] == [
        {"name": "default", "state": "parked", "reason": "limit", "since": 1_799_990_000.0, "parkedUntil": 1_800_000_000.0,
         "nextProbe": 1_800_000_000.0, "probe": ""}
    ]  # fmt: skip
    assert crew["facts"]["pool default"] == "parked until 2027-01-15T08:00:00Z: limit; next probe 2027-01-15T08:00:00Z"
    waiting = [item for item in service.get("/api/inbox") if item["id"].startswith("pool/")]
    assert [(item["kind"], item["parkedUntil"]) for item in waiting] == [("parked", 1_800_000_000.0)]
    assert service.post("/api/crews/move/wake", {"pool": "other"}, 409)["status"] == 409
    assert service.post("/api/crews/move/wake", {}, 200)["note"] == "opened: default"
    service.post("/api/crews/move/wake", {}, 409)
    assert (service.get("/api/crews/move")["pools"], table.pools()["default"].is_open) == ([], True)
    assert [one["action"] for one in service.get("/api/audit")] == ["wake"]


def parked(until: float) -> Pool:
    """Return a pool that is parked until a time."""
    return Pool(state=PoolState.PARKED, reason="limit", since=until - 10_000, until=until, next_probe=until)


def test_a_crew_is_stopped(service: Running, table: CrewTable) -> None:
    """For good, or for another conductor."""
    service.post("/api/crews/move/stop", {"why": "enough"}, 202)
    assert table.get_fact(STOP_KEY) == "enough"
    service.post("/api/crews/move/stop", {"why": "a new one", "handOver": True}, 202)
    assert table.get_fact(STOP_KEY) == f"{HAND_OVER_PREFIX}a new one"
    assert [one["action"] for one in service.get("/api/audit")] == ["stop", "stop"]


@pytest.mark.parametrize(
    ("path", "headers", "status", "said"),
    [
        ("task-01/fix", {}, 428, "If-Match"),
        ("task-01/fix", {"If-Match": '"7-error"'}, 412, "has changed"),
        ("task-02/approve", {"If-Match": '"1-working"'}, 409, "legal from there"),
        ("task-99/tell", {}, 404, "no task"),
        ("task-00/tell", {}, 404, "no task"),
        ("task-01/dance", {}, 422, "act"),
    ],
)
def test_what_cannot_be_is_refused(
    service: Running, table: CrewTable, path: str, headers: dict[str, str], status: int, said: str
) -> None:
    """With the reason, and nothing is written."""
    before: Any = (table.tasks(), len(table.messages()))
    answer = service.admin.post(f"{PATH}/{path}", json={"words": "do it"}, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]
    after = (table.tasks(), len(table.messages()))
    assert [(row.task_id, row.version) for row in before[0]] == [(row.task_id, row.version) for row in after[0]]
    assert before[1] == after[1]


def test_who_may_only_read_may_not_act(service: Running, table: CrewTable) -> None:
    """Reading needs a token, acting one that may."""
    reader = service.client(service.token("read"))
    assert reader.get("/api/crews").status_code == 200
    assert reader.post(f"{PATH}/task-02/tell", json={"words": "x"}).status_code == 403
    assert reader.post("/api/crews/move/stop", json={}).status_code == 403
    assert reader.post("/api/crews/move/wake", json={}).status_code == 403
    assert service.client("").get("/api/crews").status_code == 401


def test_a_crew_in_trouble_is_said_to_be(service: Running, table: CrewTable) -> None:
    """Its own pages answer 503 with the reason; an unknown one 404."""
    assert service.admin.get("/api/crews/later").status_code == 503
    assert service.admin.get("/api/crews/never").status_code == 404
    assert service.admin.get("/api/tasks", params={"cursor": "nonsense"}).status_code == 422


def test_crews_have_names_of_their_own() -> None:
    """By file or database, told apart where they are alike; a password is never shown."""
    crews = CrewTables(["/a/plan.db", "/b/plan.db", "/a/plan.db", "postgresql://me:secret@host:5432/fleet"])
    assert crews.names == ["plan", "plan-2", "fleet"]
    assert crews.location("fleet") == "postgresql://me@host:5432/fleet"
