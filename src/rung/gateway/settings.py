"""Gateway settings: upstreams, timeouts, limits, keys, budgets and prices; validated and immutable."""

from __future__ import annotations

import re
from dataclasses import asdict, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_number
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COUNT,
    DOLLARS,
    FLAG,
    POSITIVE_SECONDS,
    SECONDS,
    TEXT,
    WHOLE,
    Type,
    list_of,
    one_of,
    optional,
    read_settings,
    read_table,
    read_values,
    rows_of,
    setting,
    settings,
    table_of,
    whole,
)
from rung.core.policy.parser import PolicyBook, parse_policy
from rung.core.policy.spend_limits import SpendLimits
from rung.detectors.loop_settings import LoopSettings, loop_settings_from
from rung.gateway.keys import RequestRejected
from rung.gateway.upstream.model_names import check_name
from rung.gateway.upstream.read_upstreams import read_upstreams
from rung.gateway.upstream.settings import WIRES, UpstreamSettings
from rung.wiring.recording import RecordingSettings, recording_settings
from rung.wiring.request_origin import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOP_GUARD_MODES: Final = ("off", "warn", "nudge", "stop")
DEFAULT_PORT: Final = 8484
# Defaults of a gateway's policy; the policy file overrides them.
DEFAULT_POLICY: Final[Mapping[str, Any]] = {
    "ladder": "call",
    "attempts": 20,
    "seconds": 3_600.0,
    "patience": 3_600.0,  # at most as long as the client of the call waits
    "sticky": "session",
}


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")  # noqa: PLR2004


def _matching(pattern: str, allowed: str) -> Type:
    return Type(allowed, lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None)


_RATE: Final = Type("a number, 1 or more", lambda value: is_number(value, 1.0))
_PATH: Final = _matching(
    r"([A-Z]+ )?((/(?!\.{1,2}(/|$))[\w.!$&'()+,=:@~%-]+)+(/\*)?|/\*)",
    "a path such as /v1/embeddings, /v1/files/* or GET /v1/files",
)
_HOST: Final = _matching(r"[A-Za-z0-9._-]+", "a host name, without scheme and port")
_ORIGIN: Final = _matching(r"[a-z][a-z0-9+.-]*://[^/\s]+", "an origin such as https://app.example, without a path")


@settings
class TimeoutSettings:
    """Time limits of one upstream request: `[gateway.timeouts]`."""

    connect: float = setting(POSITIVE_SECONDS, "Time limit for a connection.", default=10.0)
    headers: float = setting(POSITIVE_SECONDS, "Time limit for the headers of a stream.", default=60.0)
    total: float = setting(POSITIVE_SECONDS, "Time limit for a response that is not streamed.", default=600.0)
    first_token: float = setting(POSITIVE_SECONDS, "Time limit for the first content of a stream.", default=120.0)
    first_token_fallback: float = setting(
        POSITIVE_SECONDS,
        "Time limit for the first content while another model or upstream can answer, plus a second for each 20 kB of the "
        "request. A request that may reason has the time of `first_token`; a model that is found slow gets more time.",
        default=10.0,
    )
    idle: float = setting(POSITIVE_SECONDS, "Time limit between two pieces of content.", default=60.0)
    last_resort_factor: float = setting(
        POSITIVE_SECONDS._replace(allowed="a number, more than 0"),
        "Factor for headers and first content of the last candidate, which has no fallback.",
        default=3.0,
    )


@settings
class SizeLimits:
    """Limits on requests, answers and shutdown: `[gateway.limits]`."""

    body: int = setting(COUNT, "Largest request body, in bytes.", default=64 * 1024 * 1024)
    answer: int = setting(
        COUNT, "Largest answer to a model call, in bytes after decompression.", default=64 * 1024 * 1024
    )
    concurrency: int = setting(COUNT, "Requests in flight at once.", default=1_000)
    receive: float = setting(POSITIVE_SECONDS, "Time limit for receiving a request.", default=30.0)
    stall: float = setting(
        POSITIVE_SECONDS, "How long a client may leave its response unread before it is disconnected.", default=60.0
    )
    drain: float = setting(SECONDS, "Time to finish open requests on shutdown.", default=30.0)
    shutdown_delay: float = setting(
        SECONDS,
        "How long requests are still accepted after SIGTERM while /readyz reports 503: a load balancer needs this to notice.",
        default=0.0,
    )


@settings
class GatewayKey:
    """An issued key, stored as its hash: a row of `[[gateway.keys]]`."""

    hash: str = setting(
        Type("64 hex digits, as `rung gateway new-key` prints them", _is_hash), "SHA-256 of the key, in hex."
    )
    name: str = setting(ANY_TEXT, "Name of the key.", default="")
    project: str = setting(ANY_TEXT, "Project that the key's requests count for.", default="")
    models: tuple[str, ...] = setting(
        Type(
            "a list of models", lambda value: isinstance(value, list | tuple), lambda value, _: tuple(map(str, value))
        ),
        "Models that the key may use. Empty: all.",
        default=(),
    )
    paths: tuple[str, ...] = setting(
        list_of(_PATH),
        "Further paths that the key may use, such as /v1/files/* or POST /v1/embeddings. They are not priced.",
        default=(),
    )
    dollars: float | None = setting(optional(DOLLARS), "Spend limit of the key in US dollars.", default=None)
    requests_per_minute: float | None = setting(
        optional(_RATE),
        "Requests of the key per minute, at most so many at once; further ones get a 429.",
        default=None,
    )
    expires: str = setting(
        Type("a date", parse=lambda value, _: str(value)), "Last day on which the key is valid.", default=""
    )
    revoked: bool = setting(FLAG, "Whether the key is revoked.", default=False)

    @property
    def is_limited(self) -> bool:
        """Return whether the key is limited to models or to an amount."""
        return bool(self.models) or self.dollars is not None


_CACHE_READ: Final = "US dollars for a million tokens that are read from the provider's cache. Left out: as `input`."
_CACHE_WRITE: Final = "US dollars for a million tokens that are written to the cache. Left out: as `input`."
_CACHE_WRITE_1H: Final = (
    "US dollars for a million tokens that are written to the cache for an hour. Left out: twice `input` if `cache_write` is "
    "set, else as `input`."
)


@settings
class TierPrice:
    """Price of calls with a long prompt, in full: a row of `[[gateway.prices.MODEL.tiers]]`."""

    above: int = setting(COUNT, "Prompt tokens, cached ones included, above which the price holds for the whole call.")
    input: float = setting(DOLLARS, "US dollars for a million input tokens.")
    output: float = setting(DOLLARS, "US dollars for a million output tokens.")
    cache_read: float | None = setting(optional(DOLLARS), _CACHE_READ, default=None)
    cache_write: float | None = setting(optional(DOLLARS), _CACHE_WRITE, default=None)
    cache_write_1h: float | None = setting(optional(DOLLARS), _CACHE_WRITE_1H, default=None)


@settings
class ModelAlias:
    """Model that stands for a name that clients ask for: a row of `[[gateway.aliases]]`."""

    name: str = setting(TEXT, "Name that clients ask for.")
    model: str = setting(TEXT, "Model that serves it, such as openai/gpt-5.1 with the name of its upstream.")
    project: str = setting(ANY_TEXT, "Project whose clients it is for. Empty: all.", default="")


@settings
class Price:
    """Price of one model: `[gateway.prices.MODEL]`. It replaces the price list's."""

    input: float = setting(DOLLARS, "US dollars for a million input tokens.")
    output: float = setting(DOLLARS, "US dollars for a million output tokens.")
    cache_read: float | None = setting(optional(DOLLARS), _CACHE_READ, default=None)
    cache_write: float | None = setting(optional(DOLLARS), _CACHE_WRITE, default=None)
    cache_write_1h: float | None = setting(optional(DOLLARS), _CACHE_WRITE_1H, default=None)
    tiers: tuple[TierPrice, ...] = setting(rows_of(TierPrice), "Prices of calls with a long prompt.", default=())


NO_PRICES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})


def _read_prices(value: object, key: str) -> Mapping[str, Mapping[str, Any]]:
    prices = {model: read_settings(Price, row, f"{key}.{model}") for model, row in read_table(value, key).items()}
    for model, price in prices.items():
        thresholds = [tier.above for tier in price.tiers]
        if len(set(thresholds)) < len(thresholds):
            raise ConfigError(f"{key}.{model}.tiers", thresholds, "rows whose `above` differ")
    return {model: asdict(price) for model, price in prices.items()}


def _read_forward(value: object, key: str) -> Mapping[str, str]:
    return {
        _PATH.read(path, f"{key}.{path}"): ANY_TEXT.read(name, f"{key}.{path}")
        for path, name in read_table(value, key).items()
    }


@settings
class GatewaySettings:
    """The `[gateway]` table, with the policies and the `[loops]` of the file."""

    host: str = setting(ANY_TEXT, "Address to listen on.", default="127.0.0.1")
    port: int = setting(
        whole(0, 65_535)._replace(allowed="a port, 0 to 65535"),
        "Port to listen on; 0 picks a free port.",
        default=DEFAULT_PORT,
    )
    allowed_hosts: tuple[str, ...] = setting(
        list_of(_HOST),
        "Further host names under which clients reach the gateway; others are refused (421).",
        default=(),
    )
    allowed_origins: tuple[str, ...] = setting(
        list_of(_ORIGIN),
        "Web origins whose pages may send requests, such as app://obsidian.md; others get a 403.",
        default=(),
    )
    timeouts: TimeoutSettings = setting(
        table_of(TimeoutSettings), "Time limits of one upstream request.", default_factory=TimeoutSettings
    )
    limits: SizeLimits = setting(
        table_of(SizeLimits), "Limits on requests, answers and shutdown.", default_factory=SizeLimits
    )
    budgets: SpendLimits = setting(table_of(SpendLimits), "Spend limits in US dollars.", default_factory=SpendLimits)
    keys: tuple[GatewayKey, ...] = setting(rows_of(GatewayKey), "Issued keys.", default=())
    forward: Mapping[str, str] = setting(
        Type("a table: path = name of an upstream", parse=_read_forward),
        "Further paths, such as `/openai/*`, and the upstream that they are sent to, without recovery. Other paths that "
        "the gateway does not know are refused (404).",
        default_factory=dict,
    )
    buffer_tool_calls: bool = setting(FLAG, "Send a tool call only when it is complete.", default=True)
    client_timeout_seconds: float = setting(
        POSITIVE_SECONDS,
        "How long a client waits for an answer, if its headers do not say it. A call waits for a failing upstream as long, "
        "and no longer than the policy's `patience`.",
        default=285.0,
    )
    header_hold_seconds: float | None = setting(
        optional(SECONDS),
        "Longest time a stream's headers are held; then pings follow, and an error can no longer have a status. Left out: "
        "as long as the client waits.",
        default=None,
    )
    intentional_max_tokens: int = setting(
        WHOLE, "A `max_tokens` up to this is intentional: an answer that ends at it is not resumed.", default=256
    )
    summary_model: str = setting(
        ANY_TEXT, "Model that summarises what cheaper compaction cannot fit. Empty: none.", default=""
    )
    sticky_seconds: float = setting(
        SECONDS,
        "Longest time that a session stays on its fallback model; then its own model is tried again.",
        default=300.0,
    )
    probe_seconds: float = setting(
        SECONDS,
        "Shortest time before a request of one session tries the model that sessions left in an outage. If it succeeds, all "
        "of them return. The time doubles up to threefold while it fails.",
        default=5.0,
    )
    journaled_per_second: int = setting(
        WHOLE, "Successful calls journaled per second; more are only counted. Failures are all journaled.", default=100
    )
    otel: bool = setting(FLAG, "Emit a span per call.", default=False)
    loop_guard: str = setting(
        one_of(LOOP_GUARD_MODES),
        "Reaction to a loop: none, a header, also a message, or also an end of the session.",
        default="off",
    )
    prices: Mapping[str, Mapping[str, Any]] = setting(
        Type("a table of prices", parse=_read_prices), "Prices by model.", default_factory=lambda: NO_PRICES
    )
    aliases: tuple[ModelAlias, ...] = setting(
        rows_of(ModelAlias), "Models that stand for the names that clients ask for.", default=()
    )
    upstreams: tuple[UpstreamSettings, ...] = ()
    loop_settings: LoopSettings = field(default_factory=LoopSettings)
    recording: RecordingSettings = field(default_factory=RecordingSettings)
    book: PolicyBook = field(
        default_factory=lambda: with_gateway_defaults(PolicyBook(default=parse_policy(DEFAULT_POLICY), settings={}))
    )
    _of_wire: dict[str, tuple[UpstreamSettings, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("upstreams", name, "a name that no other upstream has")
        for path, name in self.forward.items():
            if name not in names:
                raise ConfigError(f"forward.{path}", name, "the name of an upstream: " + ", ".join(names))
        if self.host not in LOOPBACK_HOSTS and not self.keys:
            raise ConfigError("host", self.host, "127.0.0.1, or [[gateway.keys]] must be set")

    def host_names(self) -> frozenset[str]:
        """Return the host names under which the gateway is reached, in lower case."""
        return LOOPBACK_HOSTS.union(name.lower() for name in (self.host, *self.allowed_hosts))

    def upstream(self, name: str) -> UpstreamSettings:
        """Return the upstream with this name."""
        return next(upstream for upstream in self.upstreams if upstream.name == name)

    def first_upstream(self, wire: str, *, is_model_call: bool = True) -> UpstreamSettings:
        """Return the first upstream with this wire format; reject the request if there is none."""
        upstreams = self.of_wire(wire)
        if not upstreams:
            text = f"no upstream with the {wire} API is set: set `{wire}` to its URL in [gateway] (or --{wire} URL)"
            other = "or name a model of another upstream in [policy] models"
            other = other if is_model_call else "because upstreams of other APIs answer model calls only"
            raise RequestRejected(404, f"{text}, {other}")
        return upstreams[0]

    def alias(self, project: str, model: str) -> str:
        """Return the model that stands for a name, for a project or for all of them; empty: the name stands for itself."""
        rows = [row for row in self.aliases if row.name == model and row.project in ("", project)]
        return max(rows, key=lambda row: bool(row.project)).model if rows else ""

    def own_or_any_upstream(self, wire: str) -> UpstreamSettings:
        """Return the first upstream with this wire format, else one that may serve its calls translated."""
        return (self.of_wire(wire) or self.upstreams)[0]

    def of_wire(self, wire: str) -> tuple[UpstreamSettings, ...]:
        """Return the upstreams with this wire format, in the order they are tried."""
        upstreams = self._of_wire.get(wire)
        if upstreams is None:
            upstreams = self._of_wire[wire] = tuple(upstream for upstream in self.upstreams if upstream.wire == wire)
        return upstreams


def with_gateway_defaults(book: PolicyBook) -> PolicyBook:
    """Return the policy book with a gateway's defaults for everything it leaves open."""
    return book.with_base(DEFAULT_POLICY)


def _listed_models(book: PolicyBook | None) -> tuple[str, ...]:
    """Return the models that the policies of a file list."""
    if book is None:
        return ()
    policies = (book.policy_for(project=name) for name in ("", *book.projects))
    return tuple(model.name for policy in policies for model in policy.models if not model.provider)


def check_model_names(found: GatewaySettings) -> None:
    """Raise ConfigError for a model whose upstream is misspelt; it would be sent as a literal name to another one."""
    upstreams = [upstream.name for upstream in found.upstreams]
    for project in ("", *found.book.projects):
        for model in found.book.policy_for(project=project).models:
            name = f"{model.provider}/{model.name}" if model.provider else model.name
            check_name(name, upstreams, f"projects.{project}.models" if project else "policy.models")
    for alias in found.aliases:
        check_name(alias.model, upstreams, "gateway.aliases.model")
    check_name(found.summary_model, upstreams, "gateway.summary_model")


def settings_from(
    table: object, book: PolicyBook | None = None, *, loops: object = None, recording: object = None, **flags: Any
) -> GatewaySettings:
    """Build settings from a file's `[gateway]`, `[loops]` and `[recording]` tables; flags override the first."""
    source = read_table({} if table is None else table, "gateway")
    source |= {key: value for key, value in flags.items() if value is not None}
    values = read_values(GatewaySettings, source, "gateway", "upstreams", *WIRES)
    try:
        found = GatewaySettings(
            upstreams=read_upstreams(source, has_keys=bool(values.get("keys")), models=_listed_models(book)),
            loop_settings=loop_settings_from({} if loops is None else loops),
            recording=recording_settings(recording),
            book=with_gateway_defaults(book or PolicyBook(default=parse_policy(DEFAULT_POLICY), settings={})),
            **values,
        )
    except ConfigError as error:
        raise (
            error if error.key.startswith(("gateway.", "loops", "recording")) else error.with_prefix("gateway")
        ) from None
    check_model_names(found)
    return found
