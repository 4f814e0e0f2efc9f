"""Questions of a recovery to a person, inside a workflow of Temporal.

Signal `rung.answer` takes the id of an option, and optionally the id of the question; query `rung.questions` returns the
open questions with their ids and options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from temporalio import workflow

from rung.core.domain.event_codec import record_to_json
from rung.core.recovery.written_answer import answers

if TYPE_CHECKING:
    from rung.core.domain import events as ev

ANSWER: Final = "rung.answer"
QUESTIONS: Final = "rung.questions"


class Questions:
    """Open questions of a workflow, and the answers to them."""

    def __init__(self) -> None:
        self.open: dict[str, ev.Ask] = {}
        self.answers: dict[str, str] = {}

    @classmethod
    def of_workflow(cls) -> Questions:
        """Return the questions of the running workflow; register their handlers if that is not done."""
        handler = workflow.get_signal_handler(ANSWER)
        known = getattr(handler, "__self__", None)
        if isinstance(known, cls):
            return known
        questions = cls()
        workflow.set_query_handler(QUESTIONS, questions.listed)
        workflow.set_signal_handler(ANSWER, questions.answer)
        return questions

    async def ask(self, name: str, question: ev.Ask, seconds: float | None) -> str | None:
        """Return the answer to a question, or None if there is none after `seconds`."""
        self.open[name] = question
        try:
            await workflow.wait_condition(lambda: name in self.answers, timeout=seconds)
        except TimeoutError:
            return None
        finally:
            del self.open[name]
        return self.answers[name]

    def answer(self, option: str, question: str = "") -> None:
        """Answer a question, by default the oldest open one. What answers no open question is logged and ignored."""
        name = question or next(iter(self.open), "")
        if name in self.open and answers(self.open[name], option):
            self.answers[name] = option
        else:
            workflow.logger.warning("rung: %r answers no open question", option)

    def listed(self) -> list[dict[str, Any]]:
        """Return the open questions as JSON."""
        return [{"id": name, **record_to_json(question)} for name, question in self.open.items()]
