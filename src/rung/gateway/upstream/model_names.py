"""Names of models with the name of their upstream, such as `backup/gpt-5.1`: finds an upstream that is misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIMILARITY: Final = 0.75  # of two names, from 0 to 1: a transposed, missing or wrong letter or two
_LONGEST_DIFFERENCE: Final = 1  # in letters: `mistralai/…` is a model of a router, not a misspelt `mistral`


def check_name(name: str, upstreams: Sequence[str], key: str) -> None:
    """Raise ConfigError if a model's name begins with nearly the name of an upstream.

    Another prefix, such as `meta-llama/` of OpenRouter, belongs to the name of the model.
    """
    prefix, slash, model = name.partition("/")
    if not slash or not prefix or prefix in upstreams:
        return
    meant = _nearest(prefix, upstreams)
    if meant:
        allowed = (
            f"the name of an upstream before the slash: there is no upstream {prefix!r}; did you mean {meant}/{model}? "
            f"(a model that is really called so: UPSTREAM/{name})"
        )
        raise ConfigError(key, name, allowed)


def _nearest(prefix: str, upstreams: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(prefix, upstreams, n=3, cutoff=_SIMILARITY)
    return next((each for each in near if abs(len(each) - len(prefix)) <= _LONGEST_DIFFERENCE), "")
