"""Parts of a policy, and the versioned policies of a journal."""

from rung.core.backoff import Backoff
from rung.core.budget import Budget
from rung.core.ladder import Ladder, Rung
from rung.core.policy import Model
from rung.core.supervision import Intensity
from rung.wiring.policies import Policies

__all__ = ["Backoff", "Budget", "Intensity", "Ladder", "Model", "Policies", "Rung"]
