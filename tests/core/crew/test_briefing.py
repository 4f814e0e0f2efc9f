"""Briefings: the task is always whole, and what was left behind is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.briefing import Briefing, LeftBehind
from rung.core.crew.handoff import Handoff, HandoffKind, handoff_kind

TEXTS = st.text(min_size=1, max_size=200)
BRIEFINGS = st.builds(
    Briefing,
    task=st.just("house"),
    instruction=TEXTS,
    kind=st.one_of(st.none(), st.sampled_from(HandoffKind)),
    starts_over=st.booleans(),
    handovers=st.lists(st.builds(LeftBehind, session=st.just("s1"), text=TEXTS), max_size=5).map(tuple),
    answer=st.text(max_size=50),
    saved=st.lists(st.just("/w/partial/house-1.md"), max_size=2).map(tuple),
    remarks=st.lists(TEXTS, max_size=7).map(tuple),
)


@given(BRIEFINGS)
def test_the_task_and_the_last_hand_over_are_whole(briefing: Briefing) -> None:
    """Whatever else is told, the instruction and the newest hand-over are in the text, and every saved file."""
    body = briefing.body()
    assert briefing.instruction in body
    assert all(one.text.strip() in body for one in briefing.handovers[-1:])
    assert all(path in body for path in briefing.saved)


def test_the_first_worker_gets_the_instruction_alone() -> None:
    """Text or path, as it was added."""
    assert Briefing(task="house", instruction="Build it.").body() == "Build it."
    assert Briefing(task="house", instruction_path="/w/house.md").body() == "/w/house.md"


def test_what_was_left_behind_never_crowds_out_the_task() -> None:
    """Huge hand-overs, answers and remarks are cut; the task is not."""
    huge = "x" * 1_000_000
    left = tuple(LeftBehind(session=f"s{number}", text=huge) for number in range(9))
    task = "Build it. " * 5_000
    briefing = Briefing(
        task="house", instruction=task, kind=HandoffKind.DIRTY, handovers=left, answer=huge, remarks=(huge,) * 9
    )
    assert task in briefing.body()
    assert len(briefing.body()) < len(task) + 64_000


def test_free_text_is_the_hand_over_of_its_session() -> None:
    """It is neither a crash nor trusted without tests; a HANDOFF file is read as such, and nothing is no hand-over."""
    free = Handoff.read("\nDone: walls.\nLeft: the door.", "s1")
    assert free is not None
    assert (free.session, free.reason, free.instructions) == ("s1", "Done: walls.", "Done: walls.\nLeft: the door.")
    assert handoff_kind(free) is HandoffKind.DIRTY
    written = Handoff(session="s2", reason="context", context=50.0)
    assert Handoff.read(written.body(), "s1") == written
    assert Handoff.read(" \n", "s1") is None
