"""Learning of a conductor: what resolved an error is kept in the table and in a log, and told where the error recurs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from rung.core.crew.contract import CONDUCTOR, MessageType
from rung.core.crew.error_triage import FixProposal
from rung.core.crew.learning import MAX_CHARS, CrewLearning, whole_sentences
from rung.core.crew.review import ReviewRequest
from rung.core.domain.event_codec import from_json
from rung.core.domain.failures import error_line
from rung.core.domain.incident import Incident
from rung.crew.protocol_files import LEARNINGS_FILE
from rung.store.crew.learnings import store_learning

if TYPE_CHECKING:
    from pathlib import Path

    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable


def keep_learning(
    table: CrewTable, directory: Path, learning: CrewLearning, now: float, sender: str = CONDUCTOR
) -> bool:
    """Keep a learning in the table, and append it to the crew's log; return False if the crew has it already."""
    if not store_learning(table, learning, sender):
        return False
    file = directory / LEARNINGS_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "a", encoding="utf-8", errors="replace") as log:
        log.write(f"{time.strftime('%F %T', time.gmtime(now))} {learning.line()}\n")
    return True


def learn_from_recovery(crew: ConductorContext, task: TaskRow) -> None:
    """Keep what resolved the last error of a task whose work is approved."""
    failures = Incident.of([from_json(event) for event in task.history or ()]).failures
    proposals = crew.table.messages(task.task_id, types=(MessageType.FIX_PROPOSAL,))
    if not failures or not proposals:
        return
    requests = crew.table.messages(task.task_id, types=(MessageType.REVIEW_REQUEST,))
    failure, proposal = failures[-1], FixProposal.parse(proposals[-1].message)
    learning = CrewLearning(
        task=task.task_id,
        kind=failure.kind.value,
        fingerprint=failure.fingerprint,
        error=whole_sentences(error_line(failure, MAX_CHARS)),
        root_cause=whole_sentences(proposal.root_cause),
        fix=whole_sentences(proposal.fix),
        outcome=whole_sentences(ReviewRequest.parse(requests[-1].message).summary) if requests else "",
    )
    if keep_learning(crew.table, crew.runtime_dir, learning, crew.now()):
        crew.log(f"{task.task_id}: learned: {learning.line()}")
