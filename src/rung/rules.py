"""User-defined classification rules."""

from rung.core.classify.classifier import use_rules
from rung.core.classify.rule_index import ClassifyRule
from rung.wiring.files import load_rules

__all__ = ["ClassifyRule", "load_rules", "use_rules"]
