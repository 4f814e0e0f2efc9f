"""Text of a complete review request."""

from __future__ import annotations

from rung.core.crew.review import ReviewRequest


def review(smoothness: int) -> str:
    """Return a complete review request."""
    return ReviewRequest(
        checkpoint=1,
        context=40.0,
        self_correction=False,
        deviations="none",
        agents_remaining="0",
        proposal="N/A",
        summary="did it",
        files_modified="1",
        tests="all pass",
        smoothness=smoothness,
        reason="as planned",
        key_outputs="out.txt (created)",
    ).body()
