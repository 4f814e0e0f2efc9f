"""Errors of the database that an engine's own retries do not take: the run goes on, and ends with its value."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.engines.fleets import fleet

if TYPE_CHECKING:
    from pathlib import Path

FAULTS = 2
TABLES = {
    ("dbos", "step"): ("rung_dbos.operation_outputs", "NEW.function_name = 's1'"),
    ("dbos", "end"): ("rung_dbos.workflow_status", "NEW.status = 'SUCCESS'"),
    ("postgres", "step"): ("rung.step", "NEW.key = 's1'"),
    ("postgres", "end"): ("rung.run", "NEW.state = 'done'"),
}


def refuse_writes(url: str, table: str, condition: str) -> None:
    """Let the database refuse the first writes that meet a condition, as it does when a lock is not had in time."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE public.fault; GRANT ALL ON SEQUENCE public.fault TO PUBLIC")
        connection.execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF {condition} AND nextval('public.fault') <= {FAULTS} THEN"
            " RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = 'lock_not_available'; END IF;"
            " RETURN NEW; END $$"
        )
        connection.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION public.refuse()"
        )


@pytest.mark.parametrize(("engine", "write"), TABLES)
def test_a_refused_write_does_not_end_the_run(tmp_path: Path, engine: str, write: str) -> None:
    """A run whose step, or whose end, could not be recorded is not failed or forgotten; other steps run once."""
    with fleet(engine, tmp_path) as engine_fleet:
        refuse_writes(engine_fleet.url, *TABLES[engine, write])
        engine_fleet.start_worker()
        run = engine_fleet.submit("five", folder=engine_fleet.folder)
        assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]
        with psycopg.connect(engine_fleet.url) as connection:
            row = connection.execute("SELECT last_value FROM public.fault").fetchone()
    assert row is not None
    assert row[0] > FAULTS, "the database refused nothing"
    begun = Counter(line.split()[1] for line in engine_fleet.log() if line.startswith("begin"))
    assert {name: begun[name] for name in ("s0", "s2", "s3", "s4")} == {"s0": 1, "s2": 1, "s3": 1, "s4": 1}
