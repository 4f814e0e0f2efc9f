"""Options of a command line: which words are options, their values and the prompt, by a table of the program's options."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


class Arity(Enum):
    """Number of words that follow an option."""

    NONE = "none"
    ONE = "one"
    OPTIONAL = "optional"  # one, unless the next word is an option
    MANY = "many"  # all words up to the next option


class CommandOption(NamedTuple):
    """One option of a command line: its name as written, its values, and all of its words."""

    name: str
    values: tuple[str, ...]
    words: tuple[str, ...]


class ParsedWords(NamedTuple):
    """Options and positional arguments, in order."""

    options: tuple[CommandOption, ...]
    positionals: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(option.name in names for option in self.options)

    def value(self, *names: str) -> str:
        """Return the last value of one of these options; empty if it has none."""
        given = [option.values[-1] for option in self.options if option.name in names and option.values]
        return given[-1] if given else ""

    def without(self, *names: str) -> tuple[str, ...]:
        """Return the words of all options but these."""
        return tuple(word for option in self.options if option.name not in names for word in option.words)


def arities(*, none: str = "", one: str = "", optional: str = "", many: str = "") -> Mapping[str, Arity]:
    """Return a table of options from lists of their names, separated by blanks."""
    named = ((none, Arity.NONE), (one, Arity.ONE), (optional, Arity.OPTIONAL), (many, Arity.MANY))
    return {name: arity for names, arity in named for name in names.split()}


def parse_words(words: Sequence[str], table: Mapping[str, Arity], *, until: Collection[str] = ()) -> ParsedWords | None:
    """Parse the words of a command line. None if it is not certain which words are the prompt.

    `until` are positional words at which parsing ends, such as subcommands; that word is the last positional one.
    """
    options: list[CommandOption] = []
    positionals: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            positionals += rest
            break
        if not _is_option(word):
            positionals.append(word)
            if word in until:
                break
            continue
        name, equals, value = word.partition("=")
        arity = table.get(name)
        if equals:
            options.append(CommandOption(name, (value,), (word,)))
            continue
        if arity is None and rest and not _is_option(rest[0]):
            return None  # an unknown option: the next word may be its value or the prompt
        values = tuple(_take_values(rest, arity or Arity.NONE))
        options.append(CommandOption(word, values, (word, *values)))
    return ParsedWords(tuple(options), tuple(positionals))


def with_value(words: Sequence[str], name: str, value: str) -> tuple[str, ...]:
    """Return the words with another value of this option."""
    before = ("", *words)
    return tuple(
        value if last == name else f"{name}={value}" if word.startswith(f"{name}=") else word
        for last, word in zip(before, words, strict=False)
    )


def _take_values(rest: list[str], arity: Arity) -> Iterable[str]:
    if (arity is Arity.ONE and rest) or (arity is Arity.OPTIONAL and rest and not _is_option(rest[0])):
        yield rest.pop(0)
    elif arity is Arity.MANY:
        while rest and not _is_option(rest[0]):
            yield rest.pop(0)


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")
