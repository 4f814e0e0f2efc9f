"""Extras of the package: which modules each brings, and the error about one that is missing."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from rung.cli.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Extra of pyproject.toml: the modules that its packages bring, the one that tells it from others first.
EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "cli": ("click", "rich", "orjson"),
    "service": ("fastapi", "starlette", "uvicorn"),
    "gateway": ("aiohappyeyeballs", "genai_prices", "httptools", "uvicorn", "uvloop"),
    "prices": ("genai_prices",),
    "postgres": ("psycopg",),
    "parquet": ("pyarrow",),
    "mcp": ("mcp",),
    "otel": ("opentelemetry.sdk",),
    "bedrock": ("botocore",),
    "vertex": ("google.auth",),
    "azure": ("azure.identity",),
    "temporal": ("temporalio",),
    "dbos": ("dbos",),
    "restate": ("restate",),
    "inngest": ("inngest",),
    "hatchet": ("hatchet_sdk",),
}
# Commands that need an extra, whichever of its modules is missing.
COMMAND_EXTRAS: Final[Mapping[str, str]] = {"serve": "service", "gateway": "gateway", "mcp": "mcp"}


class MissingPackage(UsageError):
    """A package of an extra is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs the package {package}: {install_command(extra)}")


def install_command(*extras: str) -> str:
    """Return the command that installs extras."""
    return f"pip install 'rung[{','.join(extras)}]'"


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed, of those that its packages bring on this platform."""
    return [module for module in EXTRAS[extra] if not _is_installed(module) and not _is_unavailable(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent is missing, or the module was blocked
        return False


def _is_unavailable(module: str) -> bool:
    return module == "uvloop" and sys.platform == "win32"


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Turn a failed import in the block into an error that names the extra to install."""
    try:
        yield
    except ImportError as error:
        raise MissingPackage(what, error.name or "of an extra", extra) from None


def missing_package(error: ImportError, command: str | None) -> MissingPackage | None:
    """Return the error about an import that failed in a command; None if no extra brings the module."""
    name = error.name or ""
    package = name.partition(".")[0]
    extra = COMMAND_EXTRAS.get(command or "") or next(
        (extra for extra, modules in EXTRAS.items() if package in {module.partition(".")[0] for module in modules}), ""
    )
    if not extra or package in ("", "rung"):
        return None
    return MissingPackage(f"`rung {command}`" if command else "the command line", package, extra)
