"""The streams and consoles of all commands. Nothing they print controls the terminal: error texts come from elsewhere."""

from __future__ import annotations

import sys
from errno import EPIPE
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

from rung.core.text.printable import printable, printable_with_styles

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WIDTH: Final = 100  # columns; longer lines are hard to read


class PrintableStream(TextIOWrapper):
    """Text stream that removes control sequences; on a terminal it keeps styles. Bytes go to `buffer` unchanged."""

    def __init__(self, original: TextIO) -> None:
        encoding = original.encoding if original.encoding.lower() not in ("ascii", "us-ascii") else "utf-8"
        super().__init__(original.buffer, encoding=encoding, errors="replace", write_through=True)
        self._clean = printable_with_styles if original.isatty() else printable
        self.original = original

    def write(self, text: str, /) -> int:
        """Write the text without its control sequences; return the number of characters given."""
        super().write(self._clean(text))
        return len(text)

    def close(self) -> None:
        """Flush; the original stream closes the buffer."""
        if not self.buffer.closed:
            self.flush()


def use_printable_streams() -> None:
    """Replace standard output and standard error, for commands, logs, warnings and tracebacks alike."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            # Characters that the terminal cannot encode are shown as "?".
            stream.reconfigure(errors="replace", write_through=True)
            setattr(sys, name, PrintableStream(stream))


def console(*, stderr: bool = False, max_width: int | None = MAX_WIDTH) -> Any:
    """Return a Rich console: colours on a terminal only, 80 columns in a pipe, no control sequences in its texts."""
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        """Console that adds its own styles and cursor moves to texts without control sequences."""

        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            for text, style, control in super().render(*arguments, **options):
                yield Segment(text if control else printable(text), style, control)

        def on_broken_pipe(self) -> None:
            """Let the caller end: Rich would end with exit code 1."""
            raise BrokenPipeError(EPIPE, "nobody reads the output")

    stream = sys.stderr if stderr else sys.stdout
    screen = PrintableConsole(
        file=stream.original if isinstance(stream, PrintableStream) else None,
        stderr=stderr, highlight=False, emoji=False, markup=False,
    )  # fmt: skip
    if max_width is not None:
        screen.width = min(screen.width, max_width)
    return screen
