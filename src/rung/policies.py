"""Components of a policy, the store of versioned policies in a journal, and limits that a fleet shares."""

from rung.core.domain.ladder import Ladder, Rung
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.policy import Model
from rung.core.policy.restart_intensity import RestartIntensity
from rung.wiring.fleet_limits import FleetLimits, fleet_limits
from rung.wiring.policies import PolicyStore

__all__ = [
    "Backoff",
    "Budget",
    "FleetLimits",
    "Ladder",
    "Model",
    "PolicyStore",
    "RestartIntensity",
    "Rung",
    "fleet_limits",
]
