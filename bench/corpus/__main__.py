"""Accuracy of classifiers on labelled errors: rung, a table of status codes, LiteLLM, and hermes-agent.

Each line of the file is a JSON object: id, form (http, exception, tool or output), provider, status, headers,
body, exception_type, message, exit_code, and the expected answer: label, also (other acceptable labels), retryable,
retry_after_s. Classifiers do not see the expected answer. LiteLLM and hermes-agent only handle model calls, so they are
not scored on tools and outputs. The default of FILE is RUNG_CORPUS, or ../shared/corpus/errors_public.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.corpus import printing as shown
from bench.corpus.peers import RungClassifier, StatusTable
from bench.corpus.rows import FORMS, BadFile, read_rows
from bench.corpus.score import NEEDS, judge, tallies, unmet_needs
from bench.corpus.speed import measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.corpus.peers import Classifier

DEFAULT: Final = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "errors_public.jsonl"
NOT_INSTALLED: Final = "not installed: run `make corpus`, or pip install --group corpus"


def _litellm() -> Classifier:
    from bench.corpus.litellm_mapping import LiteLLM

    return LiteLLM()


def _hermes() -> Classifier:
    from bench.corpus.hermes_mapping import Hermes

    return Hermes()


CLASSIFIERS: Final[dict[str, Callable[[], Classifier]]] = {
    "rung": RungClassifier,
    "status": StatusTable,
    "litellm": _litellm,
    "hermes": _hermes,
}
PACKAGES: Final = {"litellm": "litellm", "hermes": "agent"}


def _names_parser(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is invalid; must be one of {', '.join(allowed)}")
        return names

    return parse


def _parse_needs(text: str) -> dict[str, float]:
    needs = {}
    for part in text.split(","):
        name, _, percent = part.partition("=")
        try:
            needs[name.strip()] = float(percent)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not name=percent") from None
        if name.strip() not in NEEDS:
            raise argparse.ArgumentTypeError(f"{name!r} is invalid; must be one of {', '.join(NEEDS)}")
    return needs


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("RUNG_CORPUS") or DEFAULT)
    parser.add_argument("file", nargs="?", type=Path, default=default, metavar="FILE")
    parser.add_argument("--wrong", action="store_true", help="print each row that rung classified differently")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures and answers to this file")
    parser.add_argument("--speed", action="store_true", help="also measure classifications per second")
    parser.add_argument("--form", type=_names_parser(FORMS), default=list(FORMS), help="only rows of these forms")
    parser.add_argument(
        "--who",
        type=_names_parser(tuple(CLASSIFIERS)),
        default=list(CLASSIFIERS),
        help="only these: rung,status,litellm,hermes",
    )
    parser.add_argument(
        "--need",
        type=_parse_needs,
        default={},
        help="minimum percentages, such as strict=97,retryable=98,all=95; exit 1 if missed",
    )
    options = parser.parse_args()
    if options.need and "rung" not in options.who:
        parser.error("--need applies to rung, which --who excludes")
    return options


def _classifiers(names: list[str]) -> tuple[list[Classifier], dict[str, str]]:
    """Return the available classifiers, and why others are missing."""
    available, absent = [], {}
    for name in names:
        try:
            available.append(CLASSIFIERS[name]())
        except ModuleNotFoundError as error:
            if error.name != PACKAGES.get(name):
                raise  # another package is missing
            absent[name] = NOT_INSTALLED
    return available, absent


def main() -> int:
    """Score the classifiers and print the result."""
    options = _options()
    try:
        rows = [row for row in read_rows(options.file) if row.form in options.form]
    except BadFile as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    classifiers, absent = _classifiers(options.who)
    judged = {one.name: judge(one, rows) for one in classifiers}
    scores = {one.name: tallies(one, judged[one.name]) for one in classifiers}
    speeds = {one.name: measure(one, rows) for one in classifiers} if options.speed else {}
    print(f"{options.file}: {len(rows)} rows\n")
    shown.print_scores(scores, absent)
    if "rung" in judged:
        shown.print_kinds(judged["rung"])
        shown.print_confusions(judged["rung"])
        if options.wrong:
            shown.print_wrong(judged["rung"])
    if speeds:
        shown.print_speed(speeds)
    if options.json:
        options.json.write_text(json.dumps(shown.as_json(judged, scores, absent, speeds), indent=2) + "\n")
    unmet = unmet_needs(options.need, scores["rung"]) if options.need else []
    for line in unmet:
        print(f"corpus: {line}", file=sys.stderr)
    return 1 if unmet else 0


if __name__ == "__main__":
    sys.exit(main())
