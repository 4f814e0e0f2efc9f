"""Detectors of loops, stalls, violated constraints, incomplete outputs and unverified claims in the steps of an agent."""

from rung.core.domain.verdict import Verdict
from rung.detectors.behaviour.review import review
from rung.detectors.context_usage import ContextMonitor
from rung.detectors.finding import Finding
from rung.detectors.judging import assess, judge_case, model_judge
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.output import OutputSpec, check_output
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.stalls import durations_of, stalled
from rung.detectors.step import Step
from rung.engine.attempt_api import report_progress

__all__ = [
    "ContextMonitor",
    "Finding",
    "LoopSettings",
    "OutputSpec",
    "SessionMonitor",
    "Step",
    "Verdict",
    "assess",
    "check_output",
    "durations_of",
    "judge_case",
    "model_judge",
    "report_progress",
    "review",
    "stalled",
]
