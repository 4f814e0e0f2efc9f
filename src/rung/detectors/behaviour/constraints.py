"""Constraints that a task states surely: paths, commands and tools in imperative negative sentences.

A sentence with a condition ("unless", "until", "if") is not read: whether it holds cannot be seen in the steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.detectors.behaviour.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CONSTRAINTS: Final = 20


class Constraint(NamedTuple):
    """One stated constraint: what must not be done (`act`), to what, and the sentence that says so.

    With `only-change`, the objects are the only paths that may be changed; several are separated by a line break.
    """

    act: str
    object: str
    sentence: str


_BEGINNING: Final = r"^(?:(?:please|important|note|warning|rules?|and|but|also)\b[:,!]?\s+)*"
_NEGATIVE: Final = re.compile(
    _BEGINNING
    + r"(?:do\s+not|don['\u2019]t|never|(?:you\s+)?(?:must|may|shall)\s+(?:not|never)|you\s+should\s+(?:not|never)"
    r"|you\s+are\s+not\s+allowed\s+to)\s+(?:ever\s+)?(?P<verb>[a-z]+)\b\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
_ONLY: Final = re.compile(
    _BEGINNING
    + r"(?:you\s+(?:may|must|can|should)\s+)?(?:only\s+(?:edit|modify|change|touch)|(?:edit|modify|change|touch)\s+only)\s+"
    r"(?P<rest>.*)$",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"\b(?:unless|except|until|till|before|after|if|when|whenever|while|without|other than|more than|twice|again|yet|only"
    r"|just|directly|manually|too|once|instead of|rather than|unnecessar\w+|need(?:ed|lessly)?|by hand)\b",
    re.IGNORECASE,
)
_CUT: Final = re.compile(r"[,;:(]|\s(?:because|since|so that|but|instead|as it|it is|they|use|—|–)\b|\s[-—–]\s")  # noqa: RUF001
_ACTS: Final = {
    **dict.fromkeys(
        ("touch", "modify", "change", "edit", "alter", "update", "overwrite", "rewrite", "write"), "change"
    ),
    **dict.fromkeys(("delete", "remove"), "delete"),
    **dict.fromkeys(("read", "open", "view", "inspect", "access"), "read"),
    **dict.fromkeys(("run", "execute", "use", "call", "invoke", "launch"), "run"),
    "install": "install",
    "commit": "commit",
    "push": "push",
}
_QUOTED: Final = re.compile(r"[`\"“']([^`\"”'\s][^`\"”']{0,80})[`\"”'](?P<next>\s+(?:director|folder|file)\w*)?")
_BARE_PATH: Final = re.compile(r"(?<![\w/.:`'\"-])(?:~?/?(?:[\w.@-]+/)+[\w.@*-]*|\.?[\w-]+\.[A-Za-z]\w{0,4})(?![\w/:])")
_PATH: Final = re.compile(r"~?[\w.@/*-]*(?:/|\.[A-Za-z]\w{0,9}$)[\w.@/*-]*|\.[a-z][\w.-]*")
_NOT_A_PATH: Final = frozenset({"e.g", "i.e", "etc", "vs", "e.g.", "i.e."})
_PROGRAM: Final = re.compile(r"(?:the\s+)?(?P<name>sudo|pip|npm|yarn|git|curl|wget|docker|apt|apt-get|brew|conda|make)\b", re.IGNORECASE)  # fmt: skip
_ANY_PACKAGE: Final = re.compile(
    r"(?:any|new|additional|further|other|more|extra|third-party|external|\s)*(?:packages?|dependenc\w+|librar\w+|modules?|software|anything)\b",
    re.IGNORECASE,
)
ANY: Final = "*"


def read_constraints(text: str) -> tuple[Constraint, ...]:
    """Return the constraints that a task or a system prompt states surely, at most 20."""
    found: dict[tuple[str, str], Constraint] = {}
    for sentence in sentences(text):
        for one in (*_forbidden(sentence), *_only_allowed(sentence)):
            found.setdefault((one.act, one.object), one)
    return tuple(found.values())[:MAX_CONSTRAINTS]


def _forbidden(sentence: str) -> Iterator[Constraint]:
    match = _NEGATIVE.match(sentence)
    act = _ACTS.get(match["verb"].lower()) if match else None
    if match is None or act is None or _CONDITION.search(match["rest"]):
        return
    rest = _CUT.split(match["rest"], maxsplit=1)[0].rstrip(" .!")
    for name in dict.fromkeys(_objects(act, rest)):
        yield Constraint(act, name, sentence)


def _objects(act: str, rest: str) -> Iterator[str]:
    """Yield the objects of a verb that can be recognised in a step."""
    if act in ("commit", "push"):
        if rest.lower() in _WHOLE_REPOSITORY:
            yield ANY
    elif act == "install":
        if _ANY_PACKAGE.match(rest):
            yield ANY
        yield from (match[1] for match in _QUOTED.finditer(rest) if re.fullmatch(r"[\w.@/-]+", match[1]))
    elif act == "run":
        yield from (match[1] for match in _QUOTED.finditer(rest))
        program = _PROGRAM.match(rest)
        if program:
            yield program["name"].lower()
    else:
        yield from _paths(rest)


_WHOLE_REPOSITORY: Final = frozenset(
    {"", "anything", "any changes", "your changes", "changes", "the changes", "to the remote", "to any branch"}
)


def _only_allowed(sentence: str) -> Iterator[Constraint]:
    match = _ONLY.match(sentence)
    if match is None or _CONDITION.search(match["rest"]):
        return
    paths = list(_paths(match["rest"]))
    if paths:
        yield Constraint("only-change", "\n".join(paths), sentence)


def _paths(text: str) -> Iterator[str]:
    """Yield the paths that a text names: quoted ones, and words with a slash or an extension."""
    for match in _QUOTED.finditer(text):
        if "://" not in match[1] and "(" not in match[1] and (_PATH.fullmatch(match[1]) or match["next"]):
            yield match[1]
    for match in _BARE_PATH.finditer(_QUOTED.sub(" ", text)):
        if match[0].lower() not in _NOT_A_PATH and "://" not in text:
            yield match[0]
