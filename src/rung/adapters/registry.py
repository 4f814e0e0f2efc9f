"""Error readers by the top-level package of a class; each is imported when the first such object is seen."""

from __future__ import annotations

from typing import Final

READERS: Final[dict[str, str]] = {
    "aiohttp": "rung.adapters.aiohttp:read",
    "anthropic": "rung.adapters.anthropic:read",
    "asyncio": "rung.adapters.timeouts:read",
    "botocore": "rung.adapters.botocore:read",
    "concurrent": "rung.adapters.timeouts:read",
    "google": "rung.adapters.genai:read",
    "http": "rung.adapters.requests:read",
    "httpcore": "rung.adapters.httpx:read",
    "httpcore2": "rung.adapters.httpx:read",
    "httpx": "rung.adapters.httpx:read",
    "httpx2": "rung.adapters.httpx:read",
    "json": "rung.adapters.validation:read",
    "jsonschema": "rung.adapters.validation:read",
    "langchain_core": "rung.adapters.langchain:read",
    "litellm": "rung.adapters.litellm:read",
    "mcp": "rung.adapters.mcp:read",
    "mcp_types": "rung.adapters.mcp:read",
    "multiprocessing": "rung.adapters.timeouts:read",
    "openai": "rung.adapters.openai:read",
    "pydantic": "rung.adapters.validation:read",
    "pydantic_core": "rung.adapters.validation:read",
    "requests": "rung.adapters.requests:read",
    "subprocess": "rung.adapters.finished:read",
    "urllib3": "rung.adapters.requests:read",
}
