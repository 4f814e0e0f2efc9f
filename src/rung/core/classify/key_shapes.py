"""Shapes of secret keys: the head and the body by which the keys of each provider are recognised."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# A key is searched by a rare character in it, not by its first one: a search that stops at every s or g is five times
# slower. So each row has the head before that character, and the pattern from the character on. A "+" before the head
# means that the head is too common inside words (task-…) and must start a word.

_KEY_SHAPES: Final = (
    ("anthropic-key", "s", r"k-ant-[\w-]{10,}+"),
    ("openrouter-key", "+s", r"k-or-[\w-]{16,}+"),
    ("langfuse-key", "+[sp]", r"k-lf-[\w-]{16,}+"),
    # OpenAI, and all providers that copied its format. Not words joined by dashes.
    ("openai-key", "+s", r"k-(?!(?:[a-z]{1,16}[_-]){0,8}[a-z]{1,16}(?![\w-]))[\w-]{20,}+"),
    ("cerebras-key", "+cs", r"k-[a-z0-9]{20,}+"),
    ("groq-key", "gs", r"k_[A-Za-z0-9]{20,}+"),
    ("pinecone-key", "pcs", r"k_[\w-]{20,}+"),
    ("stripe-key", "+[sr]", r"k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    ("elevenlabs-key", "+s", r"k_[0-9a-f]{32,}+"),
    ("xai-key", "+", r"xai-[A-Za-z0-9]{20,}+"),
    ("perplexity-key", "ppl", r"x-[A-Za-z0-9]{20,}+"),
    ("slack-token", "xo", r"x[a-z]-[\w.-]{10,}+"),
    ("slack-token", "+", r"xapp-[\w-]{16,}+"),
    ("google-key", "AI", r"za[\w-]{30,}+"),
    ("google-token", "+ya2", r"9\.[\w-]{16,}+"),
    ("google-secret", "GOCSP", r"X-[\w-]{20,}+"),
    ("aws-key-id", "AK", r"IA[A-Z0-9]{16}"),
    ("aws-key-id", "AS", r"IA[A-Z0-9]{16}"),
    # Also a truncated token, and any JSON in base64, which may contain secrets.
    ("jwt", "ey", r"J[\w-]{16,}+(?:\.[\w-]++){0,4}+"),
    ("twilio-key", "+S", r"K[0-9a-f]{32}"),
    ("sendgrid-key", "+S", r"G\.[\w-]{16,}+\.[\w-]{16,}+"),
    ("databricks-token", "da", r"pi[0-9a-f]{32}(?:-[0-9])?"),
    ("nvidia-key", "nva", r"pi-[\w-]{20,}+"),
    ("pypi-token", "py", r"pi-[\w-]{20,}+"),
    ("gitlab-token", "gl", r"pat-[\w.-]{20,}+"),
    ("tavily-key", "tvl", r"y-[\w-]{20,}+"),
    ("mailgun-key", "+ke", r"y-[0-9a-f]{32}"),
    # The digits before the colon are the bot's id, which is not secret.
    ("telegram-token", "", r":(?<=[0-9]{8}:)[\w-]{35}(?![\w-])"),
    ("discord-token", "", r"\.(?<=[\w-]{24}\.)[\w-]{6}\.[\w-]{27,}+"),
    ("discord-token", "+mfa", r"\.[\w-]{60,}+"),
    ("vault-token", "+hvs", r"\.[\w-]{20,}+"),
    ("github-token", "gh[pousr]", r"_[A-Za-z0-9]{20,}+"),
    ("github-token", "github_pat", r"_\w{20,}+"),
    ("huggingface-token", "+hf", r"_[A-Za-z0-9]{20,}+"),
    ("replicate-token", "+r8", r"_[A-Za-z0-9]{20,}+"),
    ("fireworks-key", "+fw", r"_[A-Za-z0-9]{20,}+"),
    ("together-key", "tg", r"p_v1_[\w-]{20,}+"),
    ("npm-token", "+npm", r"_[A-Za-z0-9]{20,}+"),
    ("digitalocean-token", "do[opr]_v1", r"_[0-9a-f]{32,}+"),
    ("langsmith-key", "lsv2_[ps][tk]", r"_\w{20,}+"),
    ("linear-key", "lin_api", r"_[A-Za-z0-9]{20,}+"),
    ("notion-token", "+ntn", r"_[A-Za-z0-9]{20,}+"),
    ("notion-token", "+secret", r"_[A-Za-z0-9]{32,}+"),
    ("vercel-token", "+vc[piark]", r"_[A-Za-z0-9]{20,}+"),
    ("e2b-key", "+e2b", r"_[0-9a-f]{20,}+"),
    ("stripe-secret", "whsec", r"_[A-Za-z0-9]{20,}+"),
    ("supabase-key", "+sbp", r"_[0-9a-f]{32,}+"),
    ("docker-token", "dckr_", r"pat_[\w-]{20,}+"),
    ("shopify-token", "shp[acps][ats]", r"_[0-9a-fA-F]{32}"),
    ("jina-key", "jina", r"_[A-Za-z0-9]{20,}+"),
)


class KeyPattern(NamedTuple):
    """Keys with one rare character."""

    pattern: re.Pattern[str]
    kinds: tuple[str, ...]  # by index of the matching group
    heads: tuple[int, ...]  # characters of the key before the match


# A cheap guard shared by all keys with this rare character, so that snake_case is skipped quickly.
_RARE_CHAR_GUARD: Final = {"_": "(?=[A-Za-z0-9]{10})", "k": "(?<=[spr]k)"}


@lru_cache(maxsize=1)  # lazy: compiling takes longer than starting the process
def key_patterns() -> tuple[KeyPattern, ...]:
    """Return the patterns of all keys."""
    return tuple(_build_key_patterns())


def _build_key_patterns() -> Iterator[KeyPattern]:
    """Build one pattern for each rare character."""
    rows: dict[str, list[tuple[str, int, str]]] = {}
    for kind, marked, tail in _KEY_SHAPES:
        head = marked.removeprefix("+")
        rare = tail[:2] if tail[0] == "\\" else tail[0]
        word = re.sub(r"[^\w-].*", "", tail.removeprefix(rare))
        # Cheap checks come first: the rest of the word, then the head.
        pattern = f"{word}(?<={head}{rare}{word})"
        if head != marked:  # not after a letter or digit, unless that ends an escape such as \n or %20
            before = f"{head}{rare}{word}"
            pattern += rf"(?:(?<![A-Za-z0-9]{before})|(?<=\\[nrtbf]{before})|(?<=%[0-9A-Fa-f]{{2}}{before}))"
        width = len(re.sub(r"\[.*?\]", "x", head))
        rows.setdefault(rare, []).append((kind, width, f"{pattern}({tail.removeprefix(rare + word)})"))
    for rare, group in rows.items():
        kinds, heads, patterns = zip(*group, strict=True)
        yield KeyPattern(
            re.compile(f"{rare}{_RARE_CHAR_GUARD.get(rare, '')}(?:{'|'.join(patterns)})", re.ASCII), kinds, heads
        )
