"""List prices of models, from the `genai-prices` package, read in a subprocess: the list takes 30 MB of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from rung.core.policy.spend_estimates import ModelPrice

if TYPE_CHECKING:
    from collections.abc import Sequence

_THOUSAND: Final = 1_000
_LOOKUP_SECONDS: Final = 60


def fetch_list_prices(models: Sequence[str]) -> dict[str, ModelPrice | None]:
    """Return the list prices of models; None for those that have none, nothing if the list cannot be read. Blocks."""
    command = [sys.executable, "-P", "-m", __name__]  # -P: nothing is imported from the working directory
    names = json.dumps(list(models)).encode()
    try:
        process = subprocess.run(command, input=names, capture_output=True, check=True, timeout=_LOOKUP_SECONDS)  # noqa: S603  # this module
    except (OSError, subprocess.SubprocessError):
        return {}
    listed = json.loads(process.stdout)
    return {model: None if price is None else ModelPrice(*price) for model, price in listed.items()}


def list_price(model: str) -> ModelPrice | None:
    """Return the list price of a model; None if it has none."""
    try:
        from genai_prices import Usage, calc_price

        listed = calc_price(Usage(input_tokens=_THOUSAND, output_tokens=_THOUSAND), model)
        cached = calc_price(Usage(input_tokens=_THOUSAND, cache_read_tokens=_THOUSAND), model)
    except (ImportError, LookupError):
        return None
    return ModelPrice(
        float(listed.input_price) / _THOUSAND,
        float(listed.output_price) / _THOUSAND,
        listed.model.context_window,
        float(cached.input_price) / _THOUSAND,
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps({model: list_price(model) for model in json.load(sys.stdin)}))
