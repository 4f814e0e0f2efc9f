"""Checks of settings files: valid, and trusted where they need it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rung.cli.doctor.finding import DoctorFinding, State
from rung.core.domain.errors import RungError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.wiring.settings_file import SettingsFile


def check_settings() -> Iterator[DoctorFinding]:
    """Yield the file of the working directory, and the number of others that a decision was made about."""
    from rung.wiring.settings_file import CONFIG_FILE, inspect_file, known_files

    if not os.path.lexists(CONFIG_FILE):
        detail = f"no {CONFIG_FILE} in this directory: the defaults apply"
        yield DoctorFinding(name=CONFIG_FILE, state=State.INFO, detail=detail, facts={"exists": False})
    else:
        try:
            file = inspect_file(CONFIG_FILE)
            file.book()
            _check_gateway(file)
        except RungError as error:
            yield DoctorFinding(
                name=CONFIG_FILE, state=State.BROKEN, detail=str(error), fix=f"rung policy check {CONFIG_FILE}",
                facts={"exists": True, "valid": False},
            )  # fmt: skip
        else:
            yield _trust(file)
    others = len(known_files())
    detail = "1 settings file is known" if others == 1 else f"{others} settings files are known"
    yield DoctorFinding(
        name="trust", state=State.INFO, detail=f"{detail} (rung trust --list)", facts={"known_files": others}
    )


def _check_gateway(file: SettingsFile) -> None:
    """Raise ConfigError if `rung gateway` would refuse the settings of its table at its start."""
    try:
        from rung.gateway.settings import settings_from
        from rung.gateway.upstream.headers import check_keys
    except ImportError:  # the extra of the gateway is not installed, which another check names
        return
    table = file.table
    if "gateway" in table:
        with file.errors():
            loops, recording = table.get("loops"), table.get("recording")
            check_keys(settings_from(table["gateway"], file.book(), loops=loops, recording=recording).upstreams)


def _trust(file: SettingsFile) -> DoctorFinding:
    facts = {"exists": True, "valid": True, "decision": file.decision.value, "sets": list(file.withheld)}
    name = Path(file.path).name
    off = "; its alerts are off" if file.withholds_alerts else ""
    if file.is_undecided:
        detail = f"{file.place} is valid, but not trusted: it cannot set {file.sets()}{off}"
        fix = file.trust_command
        return DoctorFinding(name=name, state=State.WARNING, detail=detail, fix=fix, facts=facts)
    how = file.decision.value if file.withheld else "needs no trust"
    return DoctorFinding(name=name, state=State.OK, detail=f"{file.place} is valid; {how}{off}", facts=facts)
