"""Conditions that rules of several subjects share: phases, statuses and providers."""

from __future__ import annotations

from typing import Final

from rung.core.domain.failures import Phase

CALLS: Final = tuple(phase for phase in Phase if phase not in {Phase.RESULT, Phase.TOOL})
NON_GATEWAY_STATUSES: Final = (None, *range(100, 502))
SERVER_FAULT_STATUSES: Final = (None, 200, *range(500, 600))
REFUSING_STATUSES: Final = (None, 200, 400, 401, 403, 404, *range(500, 600))

# Services whose 403 is about a role or a rule of access. All other named providers answer it to a key that they do not accept.
ROLE_SERVICES: Final = (
    "", "aws", "azure", "bedrock", "browser", "cloudflare", "databricks", "docker", "gcp", "git", "github", "gitlab", "google", "google-cloud", "http",
    "kubernetes", "mcp", "npm", "os", "pypi", "sagemaker", "slack", "vertex", "vertex_ai", "vertexai", "watsonx", "web",
)  # fmt: skip
