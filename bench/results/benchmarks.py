"""The benchmarks that feed the page: what is run, in which environment, and which packages' versions are recorded."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.corpus.__main__ import DEFAULT as ERRORS
from bench.results import figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

ROOT: Final = Path(__file__).resolve().parents[2]
OUT: Final = "{out}"  # replaced by the file that the benchmark writes
STDOUT: Final = "stdout"  # the benchmark prints one JSON document
LINES: Final = "lines"  # the benchmark prints one JSON document a line
CORPUS: Final = "corpus"
WORLDS: Final = "worlds"
# Rules and weights were made with these files in view.
TUNED_ON: Final = frozenset({"errors_public", "errors_public2", "train", "dev"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark. `name` is the stem of its file in docs/results."""

    name: str
    module: str
    arguments: tuple[str, ...]
    reduce: Callable[[Any], Any]
    packages: tuple[str, ...] = ()
    output: str = OUT
    locked: tuple[str, ...] = ()  # peers in environments of their own, with locked versions
    environment: str = ""  # below the main one; empty: the main one
    file: Path | None = None  # the data, shown by its name alone

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return Path(sys.prefix, self.environment, "bin", "python") if self.environment else Path(sys.executable)

    @property
    def command(self) -> str:
        """The command as the page shows it: without paths of this machine."""
        data = [self.file.name] if self.file else []
        shown = [f"…/{Path(word).name}" if Path(word).is_absolute() else word for word in self.arguments]
        return " ".join(["python -m", self.module, *data, *shown]).replace(OUT, "OUT")

    def words(self, out: Path) -> list[str]:
        """Return the command line."""
        data = [str(self.file)] if self.file else []
        return [str(self.python), "-m", self.module, *data, *(str(out) if w == OUT else w for w in self.arguments)]


_JSON: Final = ("--json", OUT)
_LITELLM: Final = ("--litellm", str(Path(sys.prefix, "litellm", "bin", "python")))
_PORTKEY: Final = ("--portkey", str(Path(sys.prefix, "portkey/node_modules/@portkey-ai/gateway/build/start-server.js")))
_PEERS: Final = ("tenacity", "stamina", "backoff", "redress", "pyresilience")
BENCHMARKS: Final = {
    one.name: one
    for one in (
        Benchmark(
            name="overhead",
            module="bench.overhead",
            arguments=("--json",),
            output=STDOUT,
            reduce=figures.overhead,
            packages=_PEERS,
        ),
        Benchmark(
            name="concurrency",
            module="bench.concurrency",
            arguments=_JSON,
            reduce=figures.whole,
            packages=("tenacity", "stamina"),
        ),
        Benchmark(
            name="gateway",
            module="bench.gateway",
            arguments=(*_JSON, *_LITELLM, *_PORTKEY),
            reduce=figures.whole,
            locked=("litellm", "portkey"),
        ),
        Benchmark(
            name="matrix",
            module="bench.gateway.matrix",
            arguments=(*_JSON, *_LITELLM, *_PORTKEY),
            reduce=figures.matrix,
            locked=("litellm", "portkey"),
        ),
        Benchmark(
            name="incidents", module="bench.incidents", arguments=("--json",), output=LINES, reduce=figures.incidents
        ),
        Benchmark(
            name=WORLDS,
            module="bench.worlds",
            arguments=("--json",),
            output=LINES,
            reduce=figures.worlds,
            packages=("tenacity", "langchain-core"),
        ),
        Benchmark(
            name=CORPUS,
            module="bench.corpus",
            arguments=("--speed", *_JSON),
            reduce=figures.corpus,
            packages=("litellm", "hermes-agent"),
            environment="corpus",
        ),
        Benchmark(name="loops", module="bench.loops", arguments=_JSON, reduce=figures.loops),
        Benchmark(name="journal", module="bench.journal", arguments=_JSON, reduce=figures.whole, packages=("apsw",)),
        Benchmark(
            name="power-cuts",
            module="bench.journal.power_cuts",
            arguments=_JSON,
            reduce=figures.whole,
            packages=("apsw",),
        ),
        Benchmark(
            name="fleet",
            module="bench.fleet.engines",
            arguments=_JSON,
            reduce=figures.whole,
            packages=("dbos", "temporalio"),
        ),
    )
}


def runs_of(name: str, data: Path | None = None) -> Iterator[Benchmark]:
    """Yield the runs of a benchmark: one, or one for each file of errors.

    `data` is another file of errors, or another folder of worlds. Its name becomes a part of the result's name, so that
    held-out data never replace the public ones.
    """
    one = BENCHMARKS[name]
    if name == CORPUS:
        folder = Path(os.environ.get("RUNG_CORPUS") or ERRORS).parent
        files = [data] if data else [folder / "errors_public.jsonl", folder / "errors_public2.jsonl"]
        yield from (replace(one, name=f"{CORPUS}-{file.stem}", file=file) for file in files)
    elif name == WORLDS and data:
        yield replace(one, name=f"{WORLDS}-{data.name}", file=data)
    elif data:
        raise ValueError(f"{name} reads no data; only {CORPUS} and {WORLDS} do")
    else:
        yield one
