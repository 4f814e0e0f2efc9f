"""Registry of error readers, by the top-level package of an exception's class. A reader is imported on first use."""

from __future__ import annotations

from typing import Final

READERS: Final[dict[str, str]] = {
    "aiohttp": "rung.adapters.errors.aiohttp:read",
    "anthropic": "rung.adapters.errors.anthropic:read",
    "asyncio": "rung.adapters.errors.timeouts:read",
    "botocore": "rung.adapters.errors.botocore:read",
    "concurrent": "rung.adapters.errors.timeouts:read",
    "google": "rung.adapters.errors.genai:read",
    "http": "rung.adapters.errors.requests:read",
    "httpcore": "rung.adapters.errors.httpx:read",
    "httpcore2": "rung.adapters.errors.httpx:read",
    "httpx": "rung.adapters.errors.httpx:read",
    "httpx2": "rung.adapters.errors.httpx:read",
    "json": "rung.adapters.errors.validation:read",
    "jsonschema": "rung.adapters.errors.validation:read",
    "langchain_core": "rung.adapters.errors.langchain:read",
    "litellm": "rung.adapters.errors.litellm:read",
    "mcp": "rung.adapters.errors.mcp:read",
    "mcp_types": "rung.adapters.errors.mcp:read",
    "multiprocessing": "rung.adapters.errors.timeouts:read",
    "openai": "rung.adapters.errors.openai:read",
    "pydantic": "rung.adapters.errors.validation:read",
    "pydantic_core": "rung.adapters.errors.validation:read",
    "requests": "rung.adapters.errors.requests:read",
    "subprocess": "rung.adapters.errors.subprocess_errors:read",
    "urllib3": "rung.adapters.errors.requests:read",
}
