"""Stored learnings of a crew: messages of the conductor's row, which outlive every conductor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.crew.contract import CONDUCTOR, MessageType
from rung.core.crew.learning import CrewLearning

if TYPE_CHECKING:
    from rung.store.crew.table import CrewTable


def load_learnings(table: CrewTable) -> list[CrewLearning]:
    """Return the learnings of a crew, oldest first."""
    said = table.messages(CONDUCTOR, types=(MessageType.SYSTEM,))
    return [learning for one in said if (learning := CrewLearning.parse(one.message)) is not None]


def store_learning(table: CrewTable, learning: CrewLearning, sender: str = CONDUCTOR) -> bool:
    """Keep a learning; return False if the crew has it already."""
    if learning.identity in {one.identity for one in load_learnings(table)}:
        return False
    table.post_message(CONDUCTOR, sender, learning.body(), MessageType.SYSTEM)
    return True
