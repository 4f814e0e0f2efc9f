"""The prefilter of the fingerprint masks does not change their result."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.masks import MASKS, mask_volatile

PARTS = st.sampled_from(
    (
        *(
            "a",
            "be",
            "f00",
            "deadbeef1",
            "1abcdef",
            "abc4def",
            "0x1F",
            "0X2",
            "1e-5",
            "2E+9",
            "-",
            "_",
            "/",
            "\\",
            "C:\\a\\b",
        ),
        *(
            "/usr/lib",
            " ",
            "  ",
            "\n",
            "\x1c",
            "\u00a0",
            "\u2003",
            "é",
            "٣",
            "12:30",
            "2024-01-02T10:00:00Z",
            "x",
            ".",
            ",",
        ),
        *(
            "550e8400-e29b-41d4-a716-446655440000",
            "abcdefab-abcd-abcd-abcd-abcdefabcdef",
            "req_abc12345",
            "ABCDEFA",
            "9",
        ),
    )
)


def all_masks(text: str) -> str:
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return re.sub(r"\s+", " ", text).strip().lower()


@given(st.lists(PARTS, max_size=14).map("".join))
def test_as_all_masks_would(text: str) -> None:
    """The result equals that of applying every mask."""
    assert mask_volatile(text) == all_masks(text.lstrip())[:400]
