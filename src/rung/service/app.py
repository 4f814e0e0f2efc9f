"""The service put together: routes, the door around them, and the page."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route

import rung
from rung.service import problems
from rung.service.auth_middleware import AuthMiddleware
from rung.service.routes import admin, analytics, budgets, crews, inbox, incidents, policies, sessions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from rung.service.app_context import AppContext

STATIC_DIR: Final = Path(__file__).parent / "static"
YEAR: Final = "public, max-age=31536000, immutable"
_HASHED: Final = re.compile(r"-[A-Z0-9]{8}\.\w+$")
ROUTERS: Final = (
    policies.router,
    sessions.router,
    incidents.router,
    analytics.router,
    budgets.router,
    inbox.router,
    crews.router,
    admin.router,
)


def make_app(hub: AppContext, *, hosts: Iterable[str], address: str = "", allow_ip_hosts: bool = False) -> ASGIApp:
    """The whole service, behind its door."""
    api = make_api()
    api.state.hub = hub
    api.router.lifespan_context = _lifespan(hub, address)
    guarded = AuthMiddleware(api, auth=hub.auth, hosts=hosts, allow_ip_hosts=allow_ip_hosts)
    return GZipMiddleware(guarded, minimum_size=1_000)


def make_api() -> FastAPI:
    """The routes alone: what the OpenAPI document is made of."""
    api = FastAPI(
        title="Rung",
        version=rung.__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # it would load its scripts from another host
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        api.include_router(router)
    problems.install_handlers(api)
    api.openapi = lambda: _document(api)  # type: ignore[method-assign]  # FastAPI's own way
    api.router.routes.append(Mount("/api", app=_nothing))
    api.router.routes.append(Route("/{path:path}", _page, methods=["GET", "HEAD"]))
    return api


def _document(api: FastAPI) -> dict[str, Any]:
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


def _lifespan(hub: AppContext, address: str) -> Any:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        hub.stream.start(asyncio.get_running_loop())
        teller = inbox.WebhookNotifier(hub, address)
        await asyncio.to_thread(teller.start)
        yield
        teller.stop()
        hub.stream.close()

    return lifespan


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    await problems.problem_response(404, "there is nothing at this address")(scope, receive, send)


async def _page(request: Request) -> Response:
    """A built file, or the page itself; never anything outside the folder, nor a hidden file in it."""
    path = request.path_params["path"] or "index.html"
    file = (STATIC_DIR / path).resolve()
    hidden = any(part.startswith(".") for part in Path(path).parts)
    if hidden or not file.is_relative_to(STATIC_DIR.resolve()) or not file.is_file():
        if "." in Path(path).name or not (STATIC_DIR / "index.html").is_file():
            return problems.problem_response(404, "there is nothing at this address")
        file = STATIC_DIR / "index.html"
    kept = YEAR if _HASHED.search(file.name) else "no-cache"
    return FileResponse(file, headers={"cache-control": kept})
