"""Train the classifier's second opinion on labelled errors, and measure it on sources that it has not seen.

    python scripts/train_classifier.py FILE... [--leave-out] [--out src/rung/core/classify/learned.weights]

Each line of a file is a JSON object as `bench.corpus` reads it, with `source`. Multinomial logistic regression, trained by
AdaGrad in a fixed order with the standard library alone: the same data give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from operator import add
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from bench.corpus.rows import VISIBLE_FIELDS

from rung.core.classify import learned
from rung.core.classify.classifier import rules
from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.classify.read_facts import read_facts
from rung.core.classify.rule_index import RuleIndex
from rung.core.domain.failures import Evidence, Kind, Phase

OUT: Final = Path(learned.__file__).with_name(learned.WEIGHTS_FILE)
EPOCHS: Final = 30
RATE: Final = 0.6
DECAY: Final = 2e-4  # of the weights, per step
MIN_ROWS: Final = 2  # in which a word must occur; a pair of words in two more
MAX_BYTES: Final = 300_000
FOLDS: Final = 10
LARGEST: Final = 127
STEPS_EACH: Final = 2  # of a trajectory
CLEAN: Final = "ok"  # label of an answer that is no failure


class Example(NamedTuple):
    """One labelled error: its features, and what the rules alone say of it."""

    source: str
    form: str
    label: Kind
    also: frozenset[str]
    retryable: bool
    features: tuple[str, ...]
    by_rules: Kind
    rules_retry: bool
    is_sure: bool
    is_ruled: bool


def source_group(source: str) -> str:
    """Return the part of a source that is left out as a whole: a repository, a documentation host, a tool that was run."""
    captured = re.match(r"captured \(real tool output\): ?(\S*)", source)
    if captured:
        return f"captured:{Path(captured[1]).name}"
    if source.startswith("docs:"):
        return "docs:" + source[5:].strip().split("/")[0]
    repository = re.match(r"[\w.-]+/[\w.-]+", source)
    return repository[0].lower() if repository else source.lower()


def read_examples(paths: list[Path]) -> list[Example]:
    """Return the examples of files, in a fixed order."""
    index = RuleIndex(rules())
    examples = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row: dict[str, Any] = json.loads(line)
            seen = {name: row[name] for name in VISIBLE_FIELDS if name in row}
            facts = read_facts(without_secrets(evidence_of(seen)))
            rule = index.first_match(facts)
            examples.append(
                Example(
                    source=source_group(row["source"]),
                    form=row["form"],
                    label=Kind.UNKNOWN if row["label"] == CLEAN else Kind(row["label"]),
                    also=frozenset(row.get("also") or ()),
                    retryable=row["retryable"],
                    features=tuple(learned.features_of(facts)),
                    by_rules=Kind.UNKNOWN if rule is None else rule.kind,
                    rules_retry=rule is not None and rule.retryable,
                    is_sure=rule is not None and rule.sure,
                    is_ruled=rule is not None,
                )
            )
    return sorted(examples, key=lambda one: (one.source, one.features))


def read_clean_steps(path: Path) -> list[Example]:
    """Return steps of trajectories that succeeded, as examples of no failure."""
    examples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        trajectory = json.loads(line)
        steps = [step for step in trajectory["steps"] if not step["error"] and step["result"]]
        for at, step in enumerate(steps[:: max(1, len(steps) // STEPS_EACH)][:STEPS_EACH]):
            phase = (Phase.TOOL, Phase.CALL)[at % 2]
            facts = read_facts(without_secrets(Evidence(text=str(step["result"])[:4_000], phase=phase)))
            features = tuple(learned.features_of(facts))
            examples.append(
                Example(
                    trajectory["source"],
                    "clean",
                    Kind.UNKNOWN,
                    frozenset(),
                    False,
                    features,
                    Kind.UNKNOWN,
                    False,
                    True,
                    False,
                )
            )
    return examples


def train(examples: list[Example]) -> learned.Weights:
    """Return a model of the examples."""
    counts = Counter(feature for one in examples for feature in one.features)
    names = sorted(name for name, count in counts.items() if count >= MIN_ROWS + 2 * (" " in name) and "\n" not in name)
    kinds = tuple(sorted({one.label for one in examples}))
    place = {kind: at for at, kind in enumerate(kinds)}
    weights = {name: [0.0] * len(kinds) for name in names}
    squares = {name: [1e-6] * len(kinds) for name in names}
    bias = [0.0] * len(kinds)
    rows = [([name for name in one.features if name in weights], place[one.label]) for one in examples]
    random = Random(1)  # noqa: S311  # the order of the rows, the same each time
    for _ in range(EPOCHS):
        random.shuffle(rows)
        for known, label in rows:
            _step(weights, squares, bias, known, label)
    largest = max(abs(weight) for row in weights.values() for weight in row)
    scale = largest / LARGEST
    table = {name: learned.pack(round(weight / scale) for weight in row) for name, row in weights.items()}
    return learned.Weights(kinds, scale, tuple(round(value, 6) for value in bias), table)


def _step(
    weights: dict[str, list[float]], squares: dict[str, list[float]], bias: list[float], known: list[str], label: int
) -> None:
    """Move the weights of one row's features towards its label."""
    share = 1 / math.sqrt(len(known) or 1)
    totals = [0.0] * len(bias)
    for name in known:
        totals = list(map(add, totals, weights[name]))
    scores = [total * share + value for total, value in zip(totals, bias, strict=True)]
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    total_power = sum(powers)
    errors = [power / total_power for power in powers]
    errors[label] -= 1.0
    steps = [error * share for error in errors]
    for name in known:
        row, seen = weights[name], squares[name]
        for at, step in enumerate(steps):
            gradient = step + DECAY * row[at]
            seen[at] += gradient * gradient
            row[at] -= RATE * gradient / math.sqrt(seen[at])
    for at, error in enumerate(errors):
        bias[at] -= 0.02 * error


def answer(weights: learned.Weights, example: Example) -> tuple[Kind, bool, bool]:
    """Return kind and retryable as the classifier would answer, and whether the model decided."""
    if example.is_sure:
        return example.by_rules, example.rules_retry, False
    least = learned.MIN_CONFIDENCE_AGAINST_RULE if example.is_ruled else learned.MIN_CONFIDENCE
    found = learned.judge(weights, example.features, least)
    return (example.by_rules, example.rules_retry, False) if found is None else (found.kind, found.retryable, True)


def _without_fold(arguments: tuple[list[Example], int]) -> list[tuple[Example, tuple[Kind, bool, bool]]]:
    """Train without the sources of a fold, and answer for them."""
    examples, fold = arguments
    groups = sorted({one.source for one in examples})
    left_out = {group for at, group in enumerate(Random(2).sample(groups, len(groups))) if at % FOLDS == fold}  # noqa: S311
    weights = train([one for one in examples if one.source not in left_out])
    return [(one, answer(weights, one)) for one in examples if one.source in left_out]


def measure(examples: list[Example]) -> None:
    """Print the share of right answers on left-out sources: the rules alone, and with the model."""
    with ProcessPoolExecutor() as pool:
        judged = [
            pair for pairs in pool.map(_without_fold, ((examples, fold) for fold in range(FOLDS))) for pair in pairs
        ]
    by_form: dict[str, list[tuple[Example, tuple[Kind, bool, bool]]]] = defaultdict(list)
    for one, found in judged:
        by_form["http+exception" if one.form in {"http", "exception"} else one.form].append((one, found))
    print(f"{'':16}{'rows':>6}  {'rules: kind':>12} {'repeat':>7}  {'with model: kind':>17} {'repeat':>7} {'asked':>6}")
    for form, pairs in sorted(by_form.items()):
        figures = (
            sum(one.by_rules == one.label for one, _ in pairs),
            sum(one.rules_retry == one.retryable for one, _ in pairs),
            sum(found[0] == one.label for one, found in pairs),
            sum(found[1] == one.retryable for one, found in pairs),
            sum(found[2] for _, found in pairs),
        )
        shares = [f"{100 * figure / len(pairs):.1f}%" for figure in figures]
        print(
            f"{form:16}{len(pairs):>6}  {shares[0]:>12} {shares[1]:>7}  {shares[2]:>17} {shares[3]:>7} {figures[4]:>6}"
        )


def main() -> int:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--clean", type=Path, help="trajectories, whose successful steps are examples of no failure")
    parser.add_argument("--leave-out", action="store_true", help="also measure on sources that were left out")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    examples = read_examples(options.files) + (read_clean_steps(options.clean) if options.clean else [])
    if options.leave_out:
        measure(examples)
    data = learned.weights_as_bytes(train(examples))
    if len(data) > MAX_BYTES:
        print(f"train: {len(data)} bytes, {MAX_BYTES} allowed", file=sys.stderr)
        return 1
    options.out.write_bytes(data)
    print(f"{options.out}: {len(data)} bytes, {len(examples)} examples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
