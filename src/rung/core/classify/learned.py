"""Second opinion: a linear model over words, for failures that no rule names. It says how sure it is, and by which words.

The weights are data (`learned.weights`), trained by `scripts/train_classifier.py`. They are read when the first such
failure is classified.
"""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from struct import unpack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.read_facts import read_facts
from rung.core.domain.failures import TRANSIENT, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rung.core.classify.facts import Facts
    from rung.core.domain.failures import Evidence

RULE: Final = "learned"  # in place of a rule's id
WHY: Final = "No rule knows this text. A statistical model names the kind by its words."
MIN_WORDS: Final = 5  # of which the model knows weights: less is not enough to judge by
MIN_CONFIDENCE: Final = 0.3  # below it, the failure stays unknown
MIN_CONFIDENCE_AGAINST_RULE: Final = 0.75  # to name it otherwise than a rule that is not sure
MIN_CONFIDENCE_TO_REPEAT: Final = 0.6  # for a kind that is retried
MIN_CONFIDENCE_OF_LIMIT: Final = 0.75  # a limit that is over makes a run wait, for hours if it is a plan's
WEIGHTS_FILE: Final = "learned.weights"
RETRYABLE: Final = TRANSIENT | {Kind.MALFORMED_OUTPUT}
_LIMITS: Final = frozenset({Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED})
_MAX_WORDS: Final = 120
_MAX_WORD_CHARS: Final = 20
_PIECE_CHARS: Final = 5  # of the beginning of a longer word, which stands for its other forms
_REASONS: Final = 3
_OFFSET: Final = 128  # makes a weight a byte
_BYTES: Final = 4  # for a kind: hundreds of weights can be added
_BITS: Final = 8 * _BYTES
_LANE: Final = (1 << _BITS) - 1


class Opinion(NamedTuple):
    """Kind that the model proposes, its confidence from 0 to 1, and the features that speak for it most."""

    kind: Kind
    confidence: float
    reasons: tuple[str, ...]

    @property
    def retryable(self) -> bool:
        """Whether the same request may be repeated."""
        return self.kind in RETRYABLE


class Weights(NamedTuple):
    """A trained model: a weight for each feature and kind, from -128 to 127, times `scale`.

    The weights of a feature are one integer with 32 bits for each kind, in which each weight is stored plus 128. So one
    addition adds the weights of all kinds.
    """

    kinds: tuple[Kind, ...]
    scale: float
    bias: tuple[float, ...]
    features: Mapping[str, int]


def pack(row: Iterable[int]) -> int:
    """Return the weights of a feature as one integer."""
    return sum(weight + _OFFSET << _BITS * at for at, weight in enumerate(row))


class PairWords(NamedTuple):
    """The words that begin and end the pairs which a model knows."""

    first: frozenset[str]
    second: frozenset[str]


def features_of(facts: Facts, pairs: PairWords | None = None) -> list[str]:
    """Return the features of a failure: words, their beginnings, pairs of words, and its status, codes and classes.

    With `pairs`, other pairs are left out: a model does not know them, and looking up each costs more than this check.
    """
    return _features(facts, _words_in(facts), pairs)


def _words_in(facts: Facts) -> list[str]:
    """Return the words that the model reads."""
    said = [word for word in facts.message_words or facts.words if word != "|"]
    read = said[-_MAX_WORDS:] if facts.phase is Phase.TOOL else said[:_MAX_WORDS]
    return ["0" if word.isdigit() else word[:_MAX_WORD_CHARS] for word in read]


def _features(facts: Facts, words: list[str], pairs: PairWords | None) -> list[str]:
    found = dict.fromkeys(words)
    found |= dict.fromkeys(f"{word[:_PIECE_CHARS]}~" for word in words if len(word) > _PIECE_CHARS and word.isalpha())
    if pairs is None:
        found |= dict.fromkeys(map(" ".join, pairwise(words)))
    else:
        first, second = pairs
        found |= dict.fromkeys([f"{one} {other}" for one, other in pairwise(words) if one in first and other in second])
    found[f"phase:{facts.phase}"] = None
    found |= dict.fromkeys([f"status:{facts.status}"] if facts.status else [])
    found |= dict.fromkeys([f"exit:{facts.exit_code}"] if facts.exit_code else [])
    found |= dict.fromkeys(f"code:{code}" for code in sorted(facts.codes))
    found |= dict.fromkeys(f"class:{name}" for name in sorted(facts.exception_names))
    return list(found)


def opinion(facts: Facts, least: float = MIN_CONFIDENCE, *, explained: bool = False) -> Opinion | None:
    """Return the model's opinion, or None if it is less confident than `least`.

    It has none about a model's answer, which may be a good one: a false alarm costs more there.
    """
    if facts.phase is Phase.RESULT:
        return None
    words = _words_in(facts)
    if sum(map(str.isalpha, set(words))) < MIN_WORDS:
        return None  # also if the model knows all of them, which is loaded for the first text that needs it
    return judge(_weights(), _features(facts, words, _pair_words()), least, explained=explained)


def explain(evidence: Evidence) -> str:
    """Return why the model named a failure: its strongest words, and its confidence."""
    found = opinion(read_facts(evidence), 0.0, explained=True)
    if found is None:
        return WHY
    words = ", ".join(f"“{reason}”" for reason in found.reasons)
    return f"{WHY} Strongest: {words}. Confidence: {found.confidence:.0%}."


def judge(weights: Weights, features: Sequence[str], least: float, *, explained: bool = True) -> Opinion | None:
    """Return the opinion of a model, or None if it knows too little or is less confident than `least`.

    The strongest features are named only if it is to be `explained`.
    """
    known = [feature for feature in features if feature in weights.features]
    if sum(feature.isalpha() for feature in known) < MIN_WORDS:
        return None
    best, confidence = _most_probable(weights, known)
    kind = weights.kinds[best]
    if confidence < max(least, _least_of(kind)) or kind is Kind.UNKNOWN:
        return None
    if not explained:
        return Opinion(kind, confidence, ())
    strongest = sorted(known, key=lambda feature: -(weights.features[feature] >> _BITS * best & _LANE))
    return Opinion(kind, confidence, tuple(strongest[:_REASONS]))


def _least_of(kind: Kind) -> float:
    """Return the confidence that a kind needs: a wrong name costs most where it makes a run wait or try again."""
    if kind in _LIMITS:
        return MIN_CONFIDENCE_OF_LIMIT
    return MIN_CONFIDENCE_TO_REPEAT if kind in RETRYABLE else 0.0


def _most_probable(weights: Weights, known: Sequence[str]) -> tuple[int, float]:
    """Return the number of the most probable kind, and its probability. A long text counts as much as a short one."""
    total = sum(map(weights.features.__getitem__, known))
    totals = unpack(f"<{len(weights.kinds)}I", total.to_bytes(_BYTES * len(weights.kinds), "little"))
    none = _OFFSET * len(known)
    share = weights.scale / math.sqrt(len(known))
    scores = [(each - none) * share + bias for each, bias in zip(totals, weights.bias, strict=True)]
    highest = max(scores)
    exp = math.exp
    return scores.index(highest), 1.0 / sum([exp(score - highest) for score in scores])


@cache
def _weights() -> Weights:
    loader: Any = __spec__.loader  # reads the file beside this module; `importlib.resources` would load fifty modules
    return parse_weights(loader.get_data(__file__.rpartition("learned")[0] + WEIGHTS_FILE))


@cache
def _pair_words() -> PairWords:
    pairs = [name.split(" ") for name in _weights().features if " " in name]
    return PairWords(frozenset(pair[0] for pair in pairs), frozenset(pair[-1] for pair in pairs))


def parse_weights(data: bytes) -> Weights:
    """Read a model: a line of JSON, a line for each feature, an empty line, then one byte for each feature and kind."""
    text, _, numbers = data.partition(b"\n\n")
    header, *names = text.decode().split("\n")
    head = json.loads(header)
    count = len(head["kinds"])
    wide = bytearray(_BYTES * len(numbers))
    wide[::_BYTES] = numbers
    size = _BYTES * count
    table = {name: int.from_bytes(wide[at * size : (at + 1) * size], "little") for at, name in enumerate(names)}
    return Weights(tuple(map(Kind, head["kinds"])), head["scale"], tuple(head["bias"]), table)


def weights_as_bytes(weights: Weights) -> bytes:
    """Return a model in the form that `parse_weights` reads; the same model always has the same bytes."""
    head = {"kinds": list(weights.kinds), "scale": weights.scale, "bias": list(weights.bias)}
    lines = [json.dumps(head, separators=(",", ":")), *weights.features]
    size = _BYTES * len(weights.kinds)
    numbers = b"".join(row.to_bytes(size, "little")[::_BYTES] for row in weights.features.values())
    return "\n".join(lines).encode() + b"\n\n" + numbers
