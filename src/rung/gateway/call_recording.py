"""Recording of failed calls: what a retry from the service needs of them, sealed. A client's credentials are left out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rung.gateway.upstream.headers import has_credentials, without_credentials
from rung.gateway.upstream.settings import FORWARD
from rung.store.recorded_calls import GATEWAY, RecordedCall, record_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.incident import Incident
    from rung.gateway.inbound_request import InboundRequest
    from rung.store.journal.journal import Journal
    from rung.wiring.recording import RecordingSettings

_MAX_PENDING: Final = (
    100  # calls whose recording is not written yet; in a storm of failures, further ones are not recorded
)


class CallRecording:
    """Records calls beside the requests, from their first failure on."""

    def __init__(self, journal: Journal | None, log: Callable[[str], object]) -> None:
        self._journal = journal
        self._log = log
        self._pending: set[asyncio.Task[None]] = set()

    def begin(self, inbound: InboundRequest, incident: Incident, settings: RecordingSettings) -> None:
        """Begin to record the call of an incident, unless the settings forbid it."""
        session = incident.terms.session
        if self._journal is None or not settings.requests or not session or len(self._pending) >= _MAX_PENDING:
            return
        if len(inbound.body) > settings.max_bytes:
            return
        try:
            call = RecordedCall(GATEWAY, _content(inbound))
        except UnicodeDecodeError:  # left to the upstream to reject
            return
        work = asyncio.to_thread(record_call, self._journal, session, incident.id, call, settings.keep_seconds)
        task = asyncio.get_running_loop().create_task(work)
        self._pending.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._pending.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._log(f"rung gateway: a failed call is not recorded for a retry: {type(error).__name__}: {error}")

    async def flush(self) -> None:
        """Wait until all calls are recorded."""
        if self._pending:
            await asyncio.wait(self._pending)


def _content(inbound: InboundRequest) -> dict[str, Any]:
    headers = without_credentials(inbound.raw_headers)
    return {
        "wire": inbound.wire.name,
        "target": inbound.target,
        "upstream": inbound.upstream.name,
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers],
        "body": inbound.body.decode(),
        "key": inbound.key_hash,
        "client_key": inbound.upstream.client_credentials == FORWARD and has_credentials(inbound.raw_headers),
    }
