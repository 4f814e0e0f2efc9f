"""Prices of models as JSON: run as a program, so that the list's memory is given back when it ends."""

from __future__ import annotations

import json
import sys

THOUSAND = 1_000


def listed(model: str) -> tuple[float, float] | None:
    """US dollars for one token in and one out, by the list of the `genai-prices` package; None when it has none."""
    try:
        from genai_prices import Usage, calc_price

        found = calc_price(Usage(input_tokens=THOUSAND, output_tokens=THOUSAND), model)
    except (ImportError, LookupError):
        return None
    return float(found.input_price) / THOUSAND, float(found.output_price) / THOUSAND


if __name__ == "__main__":
    sys.stdout.write(json.dumps({model: listed(model) for model in sys.argv[1:]}))
