"""Assembly of the service: routes, authentication middleware and the dashboard's static files."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

import rung
from rung.service import problems
from rung.service.auth_middleware import AuthMiddleware
from rung.service.routes import (
    admin,
    alerts,
    analytics,
    budgets,
    crews,
    fleet,
    inbox,
    incidents,
    policies,
    providers,
    sessions,
    settings_files,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from rung.service.app_context import AppContext

STATIC_DIR: Final = Path(__file__).parent / "static"
IMMUTABLE_CACHE: Final = "public, max-age=31536000, immutable"
_HASHED_NAME: Final = re.compile(r"-[A-Z0-9]{8}\.\w+$")
ROUTERS: Final = (
    policies.router,
    sessions.router,
    incidents.router,
    analytics.router,
    budgets.router,
    providers.router,
    inbox.router,
    alerts.router,
    crews.router,
    fleet.router,
    settings_files.router,
    admin.router,
)


def make_app(context: AppContext, *, hosts: Iterable[str], address: str = "", allow_ip_hosts: bool = False) -> ASGIApp:
    """Return the complete ASGI app, with authentication and compression."""
    api = make_api()
    api.state.context = context
    api.router.lifespan_context = _lifespan(context, address)
    authenticated = AuthMiddleware(api, auth=context.auth, hosts=hosts, allow_ip_hosts=allow_ip_hosts)
    return GZipMiddleware(authenticated, minimum_size=1_000)


def make_api() -> FastAPI:
    """Return the FastAPI app without middleware; the OpenAPI document is generated from it."""
    api = FastAPI(
        title="Rung",
        version=rung.__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # Swagger UI loads scripts from another host
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        api.include_router(router)
    problems.install_handlers(api)
    api.openapi = lambda: _openapi(api)  # type: ignore[method-assign]  # FastAPI's documented override
    api.router.routes.append(Mount("/api", app=_not_found))
    api.router.routes.append(Route("/{path:path}", _static_file, methods=["GET", "HEAD"]))
    return api


def _openapi(api: FastAPI) -> dict[str, Any]:
    if api.openapi_schema is None:
        document = get_openapi(title=api.title, version=api.version, routes=api.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["ProblemDetails"] = problems.ProblemDetails.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        schemas.update(schemas["ProblemDetails"].pop("$defs", {}))
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        api.openapi_schema = document
    return api.openapi_schema


def _lifespan(context: AppContext, address: str) -> Any:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        context.stream.start(asyncio.get_running_loop())
        notifier = inbox.WebhookNotifier(context, address)
        await asyncio.to_thread(notifier.start)
        yield
        notifier.stop()
        context.stream.close()

    return lifespan


async def _not_found(scope: Any, receive: Any, send: Any) -> None:
    await problems.problem_response(404, "no such route")(scope, receive, send)


async def _static_file(request: Request) -> Response:
    """Serve a built file; never a hidden file or one outside the static folder. Other paths lead to the page of that name."""
    path = request.path_params["path"] or "index.html"
    file = (STATIC_DIR / path).resolve()
    hidden = any(part.startswith(".") for part in Path(path).parts)
    if hidden or not file.is_relative_to(STATIC_DIR.resolve()) or not _is_file(file):
        if "." in Path(path).name or not (STATIC_DIR / "index.html").is_file():
            return problems.problem_response(404, "no such route")
        return _to_page(path, request.url.query)
    cache_control = IMMUTABLE_CACHE if _HASHED_NAME.search(file.name) else "no-cache"
    return FileResponse(file, headers={"cache-control": cache_control})


def _to_page(path: str, query: str) -> Response:
    """Redirect to a page of the dashboard, which has its path in the fragment. The target is relative to this origin."""
    up = "../" * path.count("/") or "./"
    return RedirectResponse(f"{up}{'?' + query if query else ''}#/{quote(path)}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False
