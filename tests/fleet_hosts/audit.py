"""Audit of a fleet's database: triggers write down every change of a run and every step, with the address that made it.

The epoch of a run on the journal is its fencing token, of a run on DBOS the token of the execution that owns it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import psycopg

_TABLE: Final = """
CREATE TABLE public.audit (
  seq BIGSERIAL PRIMARY KEY, at DOUBLE PRECISION NOT NULL DEFAULT EXTRACT(EPOCH FROM clock_timestamp()),
  what TEXT NOT NULL, run TEXT NOT NULL, key TEXT NOT NULL, epoch TEXT NOT NULL, owner TEXT NOT NULL,
  address TEXT NOT NULL DEFAULT coalesce(host(inet_client_addr()), ''),
  writer TEXT NOT NULL DEFAULT current_setting('application_name'))
"""
_TRIGGER: Final = """
CREATE FUNCTION public.audit_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO public.audit (what, run, key, epoch, owner) {select};
  RETURN NULL;
END $$;
CREATE TRIGGER audit_{name} AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION public.audit_{name}()
"""
_EXECUTORS: Final = (
    "executors",
    "rung.message",
    """SELECT 'executor', substr(NEW.topic, 10), NEW.body::json->>'pid', '', NEW.body::json->>'host'
    WHERE NEW.topic LIKE 'executor/%'""",
)
_SPENDING: Final = (
    "spending",
    "rung.message",
    "SELECT 'spent', substr(NEW.topic, 7), NEW.body::json->>'dollars', '', '' WHERE NEW.topic LIKE 'spent/%'",
)
_EMBEDDED: Final = (
    ("runs", "rung.run", "SELECT 'run', NEW.id, NEW.state, NEW.epoch::text, NEW.owner WHERE NEW.task <> ''"),
    (
        "steps",
        "rung.step",
        "SELECT 'step ' || TG_OP, id, NEW.key, epoch::text, owner FROM rung.run WHERE id = NEW.run AND task <> ''",
    ),
)
_DBOS: Final = (
    (
        "runs",
        "rung_dbos.workflow_status",
        "SELECT 'run', NEW.workflow_uuid, NEW.status, coalesce(NEW.owner_xid::text, ''), coalesce(NEW.executor_id, '')",
    ),
    (
        "steps",
        "rung_dbos.operation_outputs",
        """SELECT 'step ' || TG_OP, workflow_uuid, NEW.function_name, coalesce(owner_xid::text, ''), coalesce(executor_id, '')
        FROM rung_dbos.workflow_status WHERE workflow_uuid = NEW.workflow_uuid""",
    ),
)


class Audited(NamedTuple):
    """A change: `what` is `run`, `step INSERT`, `step UPDATE`, `executor` or `spent`.

    `key` is the state of a run or the process id of an executor; of `spent`, the dollars that the key `run` has spent in
    total. `writer` is the process that made the change, where it gives its connections a name: DBOS has its own.
    """

    seq: int
    at: float
    what: str
    run: str
    key: str
    epoch: str
    owner: str
    address: str
    writer: str


def install(url: str, engine: str) -> None:
    """Write down all changes from now on."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
        for name, table, select in (_EXECUTORS, _SPENDING, *(_DBOS if engine == "dbos" else _EMBEDDED)):
            connection.execute(_TRIGGER.format(name=name, table=table, select=select).encode())


def read(url: str) -> list[Audited]:
    """Return all changes in their order."""
    with psycopg.connect(url, autocommit=True) as connection:
        return [Audited(*row) for row in connection.execute("SELECT * FROM public.audit ORDER BY seq")]


def owned_runs(url: str, engine: str, host: str) -> set[tuple[str, str]]:
    """Return the runs that have not ended and belong to a process of a host, each with its epoch."""
    embedded = "SELECT id, epoch::text FROM rung.run WHERE state = 'open' AND task <> '' AND owner LIKE %s"
    dbos = (
        "SELECT workflow_uuid, owner_xid::text FROM rung_dbos.workflow_status WHERE status = 'PENDING' AND executor_id IN"
        " (SELECT run FROM public.audit WHERE what = 'executor' AND owner = %s)"
    )
    query, value = (dbos, host) if engine == "dbos" else (embedded, f'["{host}"%')
    with psycopg.connect(url, autocommit=True) as connection:
        return {(run, epoch) for run, epoch in connection.execute(query.encode(), (value,))}


def count_open(url: str, engine: str) -> int:
    """Return how many runs have not ended."""
    embedded = "SELECT count(*) FROM rung.run WHERE state = 'open' AND task <> ''"
    dbos = "SELECT count(*) FROM rung_dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')"
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute((dbos if engine == "dbos" else embedded).encode()).fetchone()
    assert row is not None
    return int(row[0])


def recorded_sessions(url: str) -> set[str]:
    """Return the sessions whose calls the journal has recorded as successes, without the hash of their key."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT session FROM rung.incident WHERE status IN ('succeeded', 'recovered')")
        return {str(session).rpartition("/")[2] for (session,) in rows}
