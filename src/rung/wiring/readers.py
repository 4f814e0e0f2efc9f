"""Which adapter reads which package's objects; each is loaded when the first such object is seen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from rung.core.evidence import register_reader

if TYPE_CHECKING:
    from rung.core.evidence import Reader
    from rung.core.failures import Evidence

# Top-level package of a class: the adapter whose `read` knows it.
ADAPTERS: Final[dict[str, str]] = {
    "aiohttp": "aiohttp",
    "anthropic": "anthropic",
    "asyncio": "timeouts",
    "botocore": "botocore",
    "concurrent": "timeouts",
    "google": "genai",
    "http": "requests",
    "httpcore": "httpx",
    "httpcore2": "httpx",
    "httpx": "httpx",
    "httpx2": "httpx",
    "json": "validation",
    "jsonschema": "validation",
    "langchain_core": "langchain",
    "litellm": "litellm",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "multiprocessing": "timeouts",
    "openai": "openai",
    "pydantic": "validation",
    "pydantic_core": "validation",
    "requests": "requests",
    "subprocess": "finished",
    "urllib3": "requests",
}


def _lazily(adapter: str) -> Reader:
    def read(thing: object) -> Evidence | None:
        reader: Reader = import_module(f"rung.adapters.{adapter}").read
        return reader(thing)

    return read


def register() -> None:
    """Make every adapter known to the core, without loading one."""
    for package, adapter in ADAPTERS.items():
        register_reader(package, _lazily(adapter))
