"""Every exception of Rung, in one tree.

RungError                        base of all errors that reach a caller; picklable
├── ConfigError                  a ladder, policy, rung or setting is invalid (also a ValueError)
│   ├── FileError                a settings file cannot be read or is invalid
│   ├── AddressUnavailable       a server cannot listen at an address: its port is taken, or the host is not of this machine
│   ├── VariableNotSet           a setting names an environment variable that is not set
│   └── AlreadyRunning           another resident hook server owns the directory: hooks/resident_server
├── AttemptError                 raised by an attempt that knows what went wrong; carries evidence
│   ├── AnthropicErrorResponse   an HTTP error response: adapters/frameworks/anthropic_middleware
│   ├── HttpxErrorResponse       an HTTP error response: adapters/frameworks/httpx_transport
│   └── RecordedFailureError     an attempt of a workflow, classified where it was made: engine/durable/workflow
├── CircuitOpenError             the circuit is open, the attempt was not made; never transient
├── AttemptTimeout               the attempt was interrupted at its time limit (also a TimeoutError)
│   └── AttemptStalled           it showed no progress for longer than similar attempts have taken
├── StoreError                   a journal or a crew's table cannot be used
│   ├── JournalReadOnly          the journal can be read, but not written
│   ├── StoreDamaged             a stored text or event cannot be read
│   ├── SealedElsewhere          a stored text was sealed under a key that this process does not have
│   └── VersionConflict          a setting was changed by another writer
├── StoreUnavailable             a store cannot be used at the moment; a later try may succeed
├── RunOwnedElsewhere            a durable run belongs to a live process
├── RunNotResumable              the journal does not hold a durable run whole: it is refused, not altered
├── RunNotFound                  there is no durable run with this id
├── RunEnded                     a durable run ended without success: failed, partial or cancelled
├── IllegalTransition            a crew's table rejected a transition of a task
├── LeaseExpired                 a worker's lease of a task has expired
├── TaskChanged                  a task changed after a decision about it was made
├── ClaimBlocked                 a task cannot be claimed
├── ConductorLeaseHeld           another process conducts the crew
├── NoTaskAvailable              no task can be claimed
├── StopRequested                the conductor asked a worker to stop
├── PoolUnavailable              the service behind a worker's task is unavailable: the task is handed back
├── CheckpointError              a git checkpoint could not be taken, found or restored
├── JudgeError                   a judge returned no verdict
├── PlannerFailed                a planner or investigator wrote nothing: adapters/system/planner
└── NotJson                      a request body is not a JSON object: gateway/inbound_request

BaseException, so that no `except Exception` of an agent swallows it:
├── LeaseLost                    a durable run now belongs to another process
├── ConductorReplaced            another conductor has taken the lease of a crew
├── WorkersDied                  all workers that ran a step died: adapters/engines/temporal
├── AttemptInterrupt             interrupts a blocking attempt at its time limit: engine/timeouts/sync_timeout
└── _StopRequest                 stops the threads of a fan-out: engine/gather

Signals inside one package, never seen by a caller:
    HookBlocked                  adapters/system/user_hooks: a hook rejected the attempt
    RungNotApplicable            gateway/body_rewriter: a rung cannot be applied to this body
    RequestRejected              gateway/keys: a request is rejected before it is forwarded
    BodyTooLarge, ClientDisconnected, BodyTimeout    gateway/app: reading a request body failed
    TomlError                    core/text/toml_document: a document is no TOML or exceeds a limit
    HelperCancelled              crew/helper_runs: the answer of a helper is no longer wanted
    HookTimeout                  hooks/crash_log: a hook's time limit
    ApiProblem                   service/problems: becomes an HTTP error response
    UsageError                   cli/usage: becomes one line on stderr and exit code 2
    CommandFailed                cli/usage: becomes one line on stderr and exit code 1
    MissingPackage               cli/extras: a package of an extra is not installed; exit code 2
    Refusal                      cli/retry/option: nothing was done; becomes one line on stderr and exit code 4
    HttpError, InvalidRequest    testing: scripted errors, and requests that the fake provider rejects

Errors of other libraries are mapped where they enter: SQLite and PostgreSQL in the store's connections, SDKs in the
adapters, the operating system in the module that makes the call.
"""

from __future__ import annotations

import sys
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.failures import Evidence


class RungError(Exception):
    """Base of every exception of Rung that reaches a caller. All can be copied and pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[RungError], args: tuple[Any, ...]) -> RungError:
    """Create the error without calling its constructor, whose arguments differ from `args`."""
    error = kind.__new__(kind)
    error.args = args
    return error


class ConfigError(RungError, ValueError):
    """A setting or argument is invalid; the message names the key and what is allowed.

    Attributes:
        key: Name of the setting or argument.
        value: Its invalid value.
        allowed: What is allowed.
    """

    def __init__(self, key: str, value: object, allowed: str) -> None:
        self.key = key
        self.value = value
        self.allowed = allowed
        super().__init__(f"{key}: {value!r} is invalid; must be {allowed}")

    def with_prefix(self, prefix: str) -> ConfigError:
        """Return the error with its key prefixed by the name of the enclosing table.

        Args:
            prefix: Name of the table.
        """
        return ConfigError(f"{prefix}.{self.key}", self.value, self.allowed)


class AddressUnavailable(ConfigError):
    """A server cannot listen at its address.

    Attributes:
        host: Address or host name.
        port: Port.
        is_taken: Whether another server listens there.
    """

    def __init__(self, key: str, host: str, port: int, error: OSError) -> None:
        super().__init__(key, port, f"a free port on {host}")
        self.host = host
        self.port = port
        self.is_taken = error.errno == EADDRINUSE
        self.args = (f"{key}: {self._reason(error)}",)

    def _reason(self, error: OSError) -> str:
        match error.errno:
            case code if code == EADDRINUSE:
                return f"port {self.port} on {self.host} is taken"
            case code if code == EACCES:
                return f"port {self.port} on {self.host} needs more rights than this account has"
            case code if code == EADDRNOTAVAIL:
                return f"{self.host} is not an address of this machine"
        return f"cannot listen on {self.host}, port {self.port}: {error.strerror or error}"


def is_number(value: object, minimum: float = 0.0) -> bool:
    """Whether the value is a finite number that a float can hold, and not below the minimum."""
    return isinstance(value, int | float) and not isinstance(value, bool) and minimum <= value <= sys.float_info.max


def is_whole(value: object, minimum: int = 0) -> bool:
    """Whether the value is an integer and not below the minimum."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


class AttemptError(RungError):
    """Raised by an attempt that knows what went wrong: carries evidence instead of a text only.

    Args:
        text: Message.
        **facts: Fields of `rung.Evidence`: `finding` (a kind), `status`, `code`, `output`, `missing`, `retry_after`, …

    Attributes:
        evidence: The facts as `rung.Evidence`.

    Raises:
        ConfigError: A fact is unknown or has the wrong type.

    Example:
        >>> import rung
        >>> error = rung.AttemptError("two sections are missing", finding="partial_output", missing=("tests", "docs"))
        >>> rung.classify(error).kind.value
        'partial_output'
    """

    def __init__(self, text: str = "", **facts: Any) -> None:
        from rung.core.domain.failures import Evidence

        self.evidence: Evidence = Evidence(**_validate_facts({**facts, "text": text}))
        super().__init__(text)

    @classmethod
    def of(cls, evidence: Evidence) -> AttemptError:
        """Return an error that carries this evidence.

        Args:
            evidence: Facts about what went wrong.
        """
        error = cls(evidence.text)
        error.evidence = evidence
        return error


def _validate_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts converted to the types of Evidence; a ConfigError if one has another type.

    Callers may not be type-checked, and classify and decide rely on these types.
    """
    from rung.core.domain.failures import Kind, Phase

    facts = {name: fact for name, fact in facts.items() if fact is not None}
    for name, (fits, allowed) in _FACT_TYPES.items():
        if name in facts and not fits(facts[name]):
            raise ConfigError(name, facts[name], allowed)
    for name, choices in (("finding", Kind), ("phase", Phase)):
        if name in facts:
            if facts[name] not in tuple(choices):
                raise ConfigError(name, facts[name], "one of " + ", ".join(choices))
            facts[name] = choices(facts[name])
    return facts | {name: tuple(facts[name]) for name in ("missing", "exceptions") if name in facts}


def _is_text(fact: object) -> bool:
    return isinstance(fact, str)


def _is_texts(fact: object) -> bool:
    return isinstance(fact, list | tuple) and all(isinstance(part, str) for part in fact)


_FACT_TYPES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    **dict.fromkeys(("text", "code", "output", "stack", "tool", "step"), (_is_text, "a text")),
    **dict.fromkeys(("status", "errno", "exit_code", "signal"), (lambda fact: isinstance(fact, int), "a whole number")),
    **dict.fromkeys(("missing", "exceptions"), (_is_texts, "a list of texts")),
    **dict.fromkeys(("final", "progress"), (lambda fact: isinstance(fact, bool), "true or false")),
    **dict.fromkeys(("repeats", "line"), (is_whole, "a whole number, 0 or more")),
    **dict.fromkeys(("retry_after", "silence"), (is_number, "seconds, 0 or more")),
}


class CircuitOpenError(RungError):
    """The attempt was not made, because its circuit is open.

    Args:
        key: Name of the circuit breaker.
        retry_after: Seconds until it admits a probe.
    """

    def __init__(self, key: str, retry_after: float) -> None:
        self.key = key
        self.retry_after = retry_after
        super().__init__(
            f"circuit {key!r} is open for another {retry_after:.1f} s, because too many of its calls failed"
            " (breakers=None switches it off)"
        )


class AttemptTimeout(RungError, TimeoutError):
    """Rung interrupted an attempt at its time limit. Timeouts raised inside the attempt are other errors.

    Args:
        seconds: The time limit.
        left_behind: Whether it did not stop, and nobody waits for it any more. Default: False.
        what: Name of what was interrupted. Default: `attempt`.
    """

    def __init__(self, seconds: float, *, left_behind: bool = False, what: str = "attempt") -> None:
        self.seconds = seconds
        self.left_behind = left_behind
        left = "; it did not stop and was left behind" * left_behind
        super().__init__(f"the {what} timed out after {seconds:g} s{left}")


class AttemptStalled(AttemptTimeout):
    """Rung interrupted an attempt that showed no progress for longer than similar attempts have taken."""

    def __init__(self, seconds: float, *, left_behind: bool = False) -> None:
        super().__init__(seconds, left_behind=left_behind)
        left = "; it did not stop and was left behind" * left_behind
        self.args = (f"no sign of progress for {seconds:.0f} s, longer than similar attempts have taken{left}",)


class FileError(ConfigError):
    """A settings file cannot be read or is invalid; the message names the file."""

    def __init__(self, path: object, what: str, key: str = "file", value: object = None, allowed: str = "") -> None:
        super().__init__(key, str(path) if value is None else value, allowed or "a TOML file that can be read")
        self.path = str(path)
        self.args = (f"{path}: {what}",)


class VariableNotSet(ConfigError):
    """A setting names an environment variable that is not set."""

    def __init__(self, key: str, variable: str) -> None:
        super().__init__(key, variable, "the name of an environment variable that is set")
        self.args = (f"{key}: {variable} is not set; export it, or name a variable that is set",)


# -- stores -------------------------------------------------------------------------------------------


class StoreError(RungError):
    """A store cannot be used; the message says why, in one line."""


class JournalReadOnly(StoreError):
    """A store can be read, but not written."""


class StoreDamaged(StoreError):
    """A stored text is not UTF-8, or a stored event is not JSON."""


class SealedElsewhere(StoreError):
    """A stored text was sealed under a key that this process does not have."""

    def __init__(self, place: str, file: str, variable: str) -> None:
        super().__init__(
            f"{place} is sealed under another key: run it on the account that has the key ({file}), or set {variable}"
        )


class VersionConflict(StoreError):
    """A setting was changed by another writer since it was read."""

    def __init__(self, name: str, expected: int, actual: int) -> None:
        super().__init__(f"{name}: changed by another writer (version {actual}, expected {expected})")
        self.actual = actual


class StoreUnavailable(RungError):
    """A store cannot be used at the moment: a full disk, a lock, a lost connection. A later try may succeed."""


class RunOwnedElsewhere(RungError):
    """A durable run belongs to a live process."""

    def __init__(self, run: str, why: str) -> None:
        super().__init__(f"run {run!r} cannot be resumed: {why}")


class RunNotResumable(RungError):
    """A durable run cannot go on with the same requests as before: the message says what is missing."""

    def __init__(self, run: str, why: str) -> None:
        super().__init__(f"run {run!r} cannot be resumed: {why}")


class RunNotFound(RungError):
    """There is no durable run with this id."""

    def __init__(self, run: str) -> None:
        super().__init__(f"there is no run {run!r}")


class RunEnded(RungError):
    """A durable run ended without success: `status` is failed, partial or cancelled, and `reason` says why."""

    def __init__(self, run: str, status: str, reason: str) -> None:
        self.run, self.status, self.reason = run, status, reason
        super().__init__(f"run {run!r} ended as {status}: {reason}")


class LeaseLost(BaseException):
    """A durable run now belongs to another process: writes of its former owner are rejected.

    Derived from BaseException, so that an agent's `except Exception` does not continue a run it no longer owns.
    """


# -- crews --------------------------------------------------------------------------------------------


class IllegalTransition(RungError):
    """A crew's table rejected a transition; the message lists the legal ones and who may make them."""


class LeaseExpired(RungError):
    """The worker's lease of its task has expired: its writes are rejected, and it should stop."""


class TaskChanged(RungError):
    """The task changed after the decision about it was made; nothing was written."""


class ClaimBlocked(RungError):
    """The task is owned by another session or not claimable; a fallback row and a message record it."""

    def __init__(self, task_id: str, session: str, why: str) -> None:
        self.task_id = task_id
        self.session = session
        super().__init__(f"{task_id} cannot be claimed by {session}: {why}")


class ConductorLeaseHeld(RungError):
    """Another process conducts the crew; the message says which, where and since when."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"this crew is already conducted by {holder}")


class ConductorReplaced(BaseException):
    """Another conductor has taken the lease of this crew: the writes of this one are rejected, and it must end.

    Derived from BaseException, so that a handler's `except Exception` does not continue with the next task.
    """

    def __init__(self, holder: str) -> None:
        super().__init__(f"another conductor has the lease of this crew: {holder}")


class NoTaskAvailable(RungError):
    """No task can be claimed: each is claimed, waits for another task, or has ended."""


class StopRequested(RungError):
    """The conductor asked this worker to stop; `with Worker(…)` then hands the task off and exits normally."""


class PoolUnavailable(RungError):
    """The service behind a worker's task is unavailable; `with Worker(…)` then hands the task back for later.

    `is_temporary`: trying later helps. If not, a person has to act first.
    """

    def __init__(self, message: str, *, is_temporary: bool = True) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary


# -- adapters -----------------------------------------------------------------------------------------


class CheckpointError(RungError):
    """A checkpoint could not be taken, found or restored; the message says where and why."""


class JudgeError(RungError):
    """The judge could not be called, timed out, or returned no verdict."""
