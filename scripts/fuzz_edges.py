"""Coverage-guided fuzzing of a reader at the edges.

    python scripts/fuzz_edges.py TARGET [SECONDS]

TARGET is one of `TARGETS` in tests/security/input/fuzz_targets.py. atheris makes the bytes, hypothesis turns them into
values that the reader may get. Exits with an error at the first input that makes it fail.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["rung"]):
    from tests.security.input.fuzz_targets import TARGETS


def main() -> None:
    """Run the fuzzer for the given number of seconds."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:  # noqa: PLR2004  # the program and the target
        sys.exit(f"fuzz_edges: TARGET must be one of {', '.join(TARGETS)}")
    target, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"  # noqa: PLR2004  # as above
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-len_control=0", "-timeout=60", "-rss_limit_mb=4096"]
    fuzz_one_input = TARGETS[target].hypothesis.fuzz_one_input  # type: ignore[attr-defined]  # set by hypothesis.given
    atheris.Setup([sys.argv[0], *options], fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
