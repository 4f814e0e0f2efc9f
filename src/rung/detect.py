"""Detectors: loops, stalls, incomplete outputs and unverified claims, found in the steps of an agent."""

from rung.core.verdict import Verdict
from rung.detectors.contexts import ContextWatch
from rung.detectors.finding import Finding
from rung.detectors.judging import assess, by_asking, case_of
from rung.detectors.outputs import Contract, look_at
from rung.detectors.stalls import durations_of, stalled
from rung.detectors.step import Step
from rung.detectors.watch import Watch
from rung.detectors.watching import Watching

__all__ = [
    "ContextWatch",
    "Contract",
    "Finding",
    "Step",
    "Verdict",
    "Watch",
    "Watching",
    "assess",
    "by_asking",
    "case_of",
    "durations_of",
    "look_at",
    "stalled",
]
