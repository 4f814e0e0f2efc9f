"""Components of a policy, and the store of versioned policies in a journal."""

from rung.core.domain.ladder import Ladder, Rung
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.policy import Model
from rung.core.policy.restart_intensity import RestartIntensity
from rung.wiring.policies import PolicyStore

__all__ = ["Backoff", "Budget", "Ladder", "Model", "PolicyStore", "RestartIntensity", "Rung"]
