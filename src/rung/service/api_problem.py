"""The error that actions and routes raise. It needs no web framework, so that the command line acts without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.responses import Response


class ApiProblem(Exception):
    """An action is refused, with the HTTP status that says why; becomes a problem response."""

    def __init__(self, status: int, detail: str, *, field: str | None = None, retry_after: float = 0.0) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = {"retry-after": str(max(1, round(retry_after)))} if retry_after > 0 else None

    def response(self) -> Response:
        """Return the problem response."""
        from rung.service.problems import problem_response

        return problem_response(self.status, self.detail, field=self.field, headers=self.headers)
