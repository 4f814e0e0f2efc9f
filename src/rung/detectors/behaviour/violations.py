"""Steps that do what the task forbids. A step that failed did nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind
from rung.detectors.behaviour.constraints import ANY, Constraint
from rung.detectors.behaviour.step_acts import acts_of, commands_of, has_failed, unwrapped
from rung.detectors.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.step import Step

RULE: Final = "constraint-violated"
_INSTALL: Final = re.compile(
    r"(?:python[\d.]*\s+-m\s+)?(?:pip[\d.]*|uv(?:\s+pip)?|poetry|npm|pnpm|yarn|apt|apt-get|brew|cargo|gem|conda)\s+(?:install|add)\b(?P<rest>.*)"
)
_TEMPORARY: Final = ("/tmp/", "/var/tmp/", "/dev/")  # noqa: S108  # compared, never opened
_FORBIDDEN_BY: Final = {"change": ("change", "delete"), "delete": ("delete",), "read": ("read",)}


def violation(step: Step, constraints: Sequence[Constraint], root: str = "") -> Finding | None:
    """Return the first constraint that a step violates. `root` is the directory that relative paths of the task mean."""
    if not constraints or has_failed(step):
        return None
    for constraint in constraints:
        what = _violated_by(step, constraint, root)
        if what:
            return Finding(
                rule=RULE,
                kind=Kind.GOAL_MISALIGNED,
                text=f"the task says “{constraint.sentence}”, but {what}",
                count=1,
                tool=step.tool,
            )
    return None


def _violated_by(step: Step, constraint: Constraint, root: str) -> str:
    """Return what the step did against the constraint; empty if nothing."""
    act, name = constraint.act, constraint.object
    if act == "run":
        if step.tool == name:
            return f"the tool {name} was called"
        ran = next((command for command in commands_of(step) if _runs(command, name)), "")
        return f"`{ran[:120]}` was run" if ran else ""
    if act in ("commit", "push"):
        return next((f"`{one[:120]}` was run" for one in commands_of(step) if _runs(one, f"git {act}")), "")
    if act == "install":
        return next((f"`{one[:120]}` was run" for one in commands_of(step) if _installs(one, name)), "")
    if act == "only-change":
        return _change_elsewhere(step, name.split("\n"), root)
    done = next((path for one, path in acts_of(step) if one in _FORBIDDEN_BY[act] and _is_path(path, name, root)), "")
    return f"{step.tool} did so to {done}" if done else ""


def _runs(command: str, forbidden: str) -> bool:
    """Return whether a command begins with the forbidden one, also behind `sudo` or `timeout`."""
    wanted = forbidden.split()
    return any(text.split()[: len(wanted)] == wanted for text in (command, unwrapped(command)))


def _installs(command: str, name: str) -> bool:
    match = _INSTALL.match(unwrapped(command))
    if match is None:
        return False
    words = match["rest"].split()
    if not words or any(word in ("-r", "-e", ".", "--requirement", "--editable") for word in words):
        return False  # what the project declares already
    packages = [re.split(r"[=<>@\[]", word, maxsplit=1)[0] for word in words if not word.startswith("-")]
    return bool(packages) and (name == ANY or name in packages)


def _change_elsewhere(step: Step, allowed: Sequence[str], root: str) -> str:
    if commands_of(step):
        return ""  # a command may write by-products
    for act, path in acts_of(step):
        outside = path.startswith(_TEMPORARY) or (root and path.startswith("/") and not _is_below(path, root))
        is_comparable = not path.startswith("/") or root or any(one.startswith("/") for one in allowed)
        if (
            act in ("change", "delete")
            and not outside
            and is_comparable
            and not any(_is_path(path, one, root) for one in allowed)
        ):
            return f"{step.tool} changed {path}"
    return ""


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(folder.rstrip("/") + "/")


def _is_path(path: str, named: str, root: str) -> bool:
    """Return whether a step's path surely is the named one, or below the named folder."""
    wanted = named.rstrip("/*").removeprefix("./")
    if root and path.startswith("/") and not wanted.startswith(("/", "~")):
        if not _is_below(path, root):
            return False
        path = path[len(root.rstrip("/")) + 1 :]
    path = path.removeprefix("./")
    if not wanted or path == wanted or _is_below(path, wanted):
        return bool(wanted)
    # Without a root, an absolute path counts only if the task names more than a bare file name.
    return path.startswith("/") and "/" in wanted and f"/{wanted}/" in f"{path}/"
