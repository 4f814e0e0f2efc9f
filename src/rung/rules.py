"""Classification rules of your own, beside the built-in ones."""

from rung.core.classify.classifier import use_rules
from rung.core.classify.rule_index import Rule
from rung.wiring.files import load_rules

__all__ = ["Rule", "load_rules", "use_rules"]
