"""What a gateway is told once: where requests go, how long it waits, what it lets through. Frozen, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final

from rung.core.config import PolicyBook, policy_from
from rung.core.errors import ConfigError, is_number, is_whole
from rung.core.spending import Allowance
from rung.detectors.watching import Watching, watching_from
from rung.gateway.wires import ANTHROPIC, OPENAI

WIRES: Final = (ANTHROPIC, OPENAI)
GUARDS: Final = ("off", "warn", "nudge", "stop")
DEFAULT_PORT: Final = 8484
PUBLIC: Final = {ANTHROPIC: "https://api.anthropic.com", OPENAI: "https://api.openai.com"}
# What a policy for a gateway starts from; a file's own words weigh more.
POLICY: Final[Mapping[str, Any]] = {
    "ladder": "call",
    "retries": 8,  # of a service that fails every third call, three repeats would still let one in a hundred through
    "attempts": 20,
    "seconds": 3_600.0,
    "sticky": "session",
    "backoff": {"base": 0.5, "cap": 8.0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One place where requests go. With `key_env` its key is held here, else the client's is passed on."""

    name: str
    wire: str
    url: str
    key_env: str = ""

    def __post_init__(self) -> None:
        if self.wire not in WIRES:
            raise ConfigError(f"gateway.upstreams.{self.name}.wire", self.wire, "one of " + ", ".join(WIRES))
        if not self.url.startswith(("http://", "https://")) or any(c.isspace() for c in self.url):
            raise ConfigError(
                f"gateway.upstreams.{self.name}.url", self.url, "a URL that begins with http:// or https://"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Seconds to wait for a connection, for headers, for the first content, and between two pieces of it.

    Headers of an answer that is not streamed come when it is whole: they have `whole`. The last candidate, to
    which there is no other, has `grace` times as long for headers and first content.
    """

    connect: float = 10.0
    headers: float = 60.0
    whole: float = 600.0
    first: float = 120.0
    gap: float = 60.0
    grace: float = 3.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not is_number(value) or value <= 0:
                raise ConfigError(f"gateway.clocks.{item.name}", value, "seconds, more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is let through: bytes of a body, requests at once, seconds to send a request, seconds to drain."""

    body: int = 64 * 1024 * 1024
    concurrency: int = 1_000
    receive: float = 30.0
    drain: float = 30.0

    def __post_init__(self) -> None:
        for name in ("body", "concurrency"):
            if not is_whole(getattr(self, name), 1):
                raise ConfigError(f"gateway.limits.{name}", getattr(self, name), "a whole number, 1 or more")
        for name in ("receive", "drain"):
            if not is_number(getattr(self, name)):
                raise ConfigError(f"gateway.limits.{name}", getattr(self, name), "seconds, 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key given out: known by its hash, good for a project, for some models, some dollars, until some day."""

    hash: str
    name: str = ""
    project: str = ""
    models: tuple[str, ...] = ()
    dollars: float | None = None
    expires: str = ""
    revoked: bool = False

    def __post_init__(self) -> None:
        if len(self.hash) != 64 or any(c not in "0123456789abcdef" for c in self.hash):  # noqa: PLR2004  # SHA-256
            raise ConfigError("gateway.keys.hash", self.hash, "64 hex digits, as `rung gateway new-key` prints them")
        if self.dollars is not None and not is_number(self.dollars):
            raise ConfigError("gateway.keys.dollars", self.dollars, "US dollars, 0 or more, or left out")


NO_PRICES: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of it.

    hold_tools          a tool call reaches the client when it is whole (false: as it comes)
    hold_seconds        the longest a stream's headers are held back; then there are pings
    deliberate_limit    an output limit up to this is meant: an answer cut at it is not resumed
    summary_model       the model that summarises what cheaper compaction cannot make fit (empty: none)
    sticky_seconds      how long a session stays on the model it was handed over to
    otel                a span per call, for the tracer provider this process has
    loop_guard          what is done about loops that pass by: off, warn (a header), nudge (also a message), stop (also an end)
    watching            what counts as one: the `[loops]` table
    journal_rate        good calls written to the journal in one second; more are counted only, failures are all written
    """

    upstreams: tuple[Upstream, ...] = ()
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    clocks: Clocks = field(default_factory=Clocks)
    limits: Limits = field(default_factory=Limits)
    budgets: Allowance = field(default_factory=Allowance)
    keys: tuple[Key, ...] = ()
    hold_tools: bool = True
    hold_seconds: float = 15.0
    deliberate_limit: int = 256
    summary_model: str = ""
    sticky_seconds: float = 3_600.0
    journal_rate: int = 100
    otel: bool = False
    loop_guard: str = "off"
    watching: Watching = field(default_factory=Watching)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: NO_PRICES)
    book: PolicyBook = field(default_factory=lambda: book_of(PolicyBook(default=policy_from(POLICY), settings={})))
    _of_wire: dict[str, tuple[Upstream, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("gateway.upstreams", name, "each name once")
        if not is_whole(self.port) or self.port > 65_535:  # noqa: PLR2004  # the highest there is
            raise ConfigError("gateway.port", self.port, "a port, 0 to 65535")
        if self.host not in ("127.0.0.1", "::1", "localhost") and not self.keys:
            raise ConfigError("gateway.host", self.host, "127.0.0.1, unless [[gateway.keys]] says who may come")
        if self.loop_guard not in GUARDS:
            raise ConfigError("gateway.loop_guard", self.loop_guard, "one of " + ", ".join(GUARDS))
        for name in ("hold_seconds", "sticky_seconds"):
            if not is_number(getattr(self, name)):
                raise ConfigError(f"gateway.{name}", getattr(self, name), "seconds, 0 or more")

    def upstream(self, name: str) -> Upstream:
        """The upstream of this name."""
        return next(upstream for upstream in self.upstreams if upstream.name == name)

    def of_wire(self, wire: str) -> tuple[Upstream, ...]:
        """The upstreams that speak this wire, in the order they are tried."""
        found = self._of_wire.get(wire)
        if found is None:
            found = self._of_wire[wire] = tuple(upstream for upstream in self.upstreams if upstream.wire == wire)
        return found


def book_of(book: PolicyBook) -> PolicyBook:
    """A book of policies for a gateway: what it does not say is a gateway's own."""
    settings = {**POLICY, **book.settings}
    return replace(book, settings=settings, default=policy_from(settings))


_WORDS: Final = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_PARTS: Final = {"clocks": Clocks, "limits": Limits, "budgets": Allowance}
_PLAIN: Final[Mapping[str, tuple[type, ...]]] = {
    "host": (str,),
    "port": (int,),
    "hold_tools": (bool,),
    "hold_seconds": (int, float),
    "deliberate_limit": (int,),
    "summary_model": (str,),
    "sticky_seconds": (int, float),
    "journal_rate": (int,),
    "otel": (bool,),
    "loop_guard": (str,),
}
KEYS: Final = ("upstreams", "keys", "prices", *_PARTS, *_PLAIN, *WIRES)


def settings_from(table: object, book: PolicyBook | None = None, *, loops: object = None, **flags: Any) -> Settings:
    """Settings from the `[gateway]` table of a file, its `[loops]`, and flags, which weigh more."""
    source = {**_table({} if table is None else table, "gateway"), **{k: v for k, v in flags.items() if v is not None}}
    for key, value in source.items():
        if key not in KEYS:
            raise ConfigError(f"gateway.{key}", value, "one of the keys " + ", ".join(KEYS))
    made: dict[str, Any] = {}
    for key, kinds in _PLAIN.items():
        if key in source:
            if type(source[key]) not in kinds:
                raise ConfigError(f"gateway.{key}", source[key], _WORDS[kinds[-1]])
            made[key] = source[key]
    for key, part in _PARTS.items():
        if key in source:
            made[key] = _part(part, source[key], f"gateway.{key}")
    made["upstreams"] = _upstreams(source)
    made["keys"] = tuple(_key(row, f"gateway.keys[{n}]") for n, row in enumerate(_list(source.get("keys", []))))
    made["prices"] = _prices(source.get("prices", {}))
    made["watching"] = watching_from({} if loops is None else loops)
    made["book"] = book_of(book or PolicyBook(default=policy_from(POLICY), settings={}))
    return Settings(**made)


def _upstreams(source: Mapping[str, Any]) -> tuple[Upstream, ...]:
    """The named ones, before them one per wire: by its URL, else the public service's."""
    tables = _table(source.get("upstreams", {}), "gateway.upstreams")
    named = tuple(_upstream(name, row) for name, row in tables.items())
    first = []
    for wire in WIRES:
        if wire in source:
            if not isinstance(source[wire], str):
                raise ConfigError(f"gateway.{wire}", source[wire], "a URL")
            first.append(Upstream(name=wire, wire=wire, url=source[wire].rstrip("/")))
        elif not any(upstream.wire == wire for upstream in named):
            first.append(Upstream(name=wire, wire=wire, url=PUBLIC[wire]))
    return (*first, *named)


def _upstream(name: str, row: object) -> Upstream:
    where = f"gateway.upstreams.{name}"
    table = _known(_table(row, where), ("wire", "url", "key_env"), where)
    for key in ("wire", "url"):
        if not isinstance(table.get(key), str):
            raise ConfigError(f"{where}.{key}", table.get(key), "a text")
    if not isinstance(table.get("key_env", ""), str):
        raise ConfigError(f"{where}.key_env", table["key_env"], "the name of an environment variable")
    return Upstream(name=name, **{**table, "url": table["url"].rstrip("/")})


def _key(row: object, where: str) -> Key:
    table = _known(_table(row, where), [item.name for item in fields(Key)], where)
    if "models" in table:
        table["models"] = tuple(map(str, _list(table["models"])))
    if "expires" in table:
        table["expires"] = str(table["expires"])
    if not isinstance(table.get("hash"), str):
        raise ConfigError(f"{where}.hash", table.get("hash"), "64 hex digits, as `rung gateway new-key` prints them")
    return Key(**table)


def _prices(value: object) -> Mapping[str, Mapping[str, float]]:
    """US dollars for a million tokens in and out, by model."""
    made = {}
    for model, row in _table(value, "gateway.prices").items():
        where = f"gateway.prices.{model}"
        table = _known(_table(row, where), ("input", "output"), where)
        for key in ("input", "output"):
            if not is_number(table.get(key)):
                raise ConfigError(f"{where}.{key}", table.get(key), "US dollars for a million tokens")
        made[model] = MappingProxyType({key: float(table[key]) for key in table})
    return MappingProxyType(made)


def _part(part: Any, value: object, where: str) -> Any:
    table = _known(_table(value, where), [item.name for item in fields(part)], where)
    if "projects" in table:
        table["projects"] = _table(table["projects"], f"{where}.projects")
    try:
        return part(**table)
    except ConfigError as error:
        raise error if error.key.startswith("gateway.") else error.under("gateway") from None


def _known(table: dict[str, Any], allowed: Any, where: str) -> dict[str, Any]:
    for key, value in table.items():
        if key not in allowed:
            raise ConfigError(f"{where}.{key}", value, "one of the keys " + ", ".join(allowed))
    return table


def _table(value: object, where: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise ConfigError(where, value, "a table")


def _list(value: object) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise ConfigError("gateway.keys", value, "a list")
