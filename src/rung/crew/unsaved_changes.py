"""The changes in a worker's folder that are not committed: a diff of tracked files and of new text files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.crew.context import git_output
from rung.crew.plan_sync import PLAN_FOLDER_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

MAX_FILE_BYTES: Final = 64 * 1024  # of a new file that is saved with its content
MAX_NEW_BYTES: Final = 1024 * 1024  # of all new files of a worker
MAX_NEW_FILES: Final = 200


def unsaved_changes(crew: ConductorContext, task: TaskRow) -> tuple[str, str]:
    """Return the folder of the task's work and the diff of its changes; an empty diff outside a git work tree.

    The folder is the task's `workdir`, else the folder of the plan. The index of the repository is not touched.
    """
    folder = task.workdir or crew.table.get_fact(PLAN_FOLDER_KEY) or ""
    root = git_output(folder, "rev-parse", "--show-toplevel").strip("\r\n") if folder else ""
    if not root:
        return folder, ""
    # Without this setting, `git diff` writes the times of unchanged files into the index.
    diff = git_output(folder, "-c", "diff.autoRefreshIndex=false", "diff", "--no-ext-diff", "--no-textconv", "HEAD")
    listed = git_output(folder, "ls-files", "--others", "--exclude-standard", "--full-name", "-z")
    names = [name for name in listed.split("\0") if name and not _is_own(crew, Path(root) / name)]
    return folder, _joined(diff, _new_files(Path(root), names))


def _is_own(crew: ConductorContext, file: Path) -> bool:
    """Return whether a file belongs to the crew itself: its table or its runtime directory."""
    own = crew.runtime_dir.resolve()
    table = own.with_name(own.name.removesuffix(".d"))
    return file.is_relative_to(own) or file in {
        table.with_name(table.name + end) for end in ("", "-wal", "-shm", "-journal")
    }


def _joined(*parts: str) -> str:
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts if part)


def _new_files(root: Path, names: Sequence[str]) -> str:
    """Return the diff of files that git does not know. What is too large or no text is only named."""
    parts, left, unread = [], MAX_NEW_BYTES, []
    for name in names[:MAX_NEW_FILES]:
        content = _read_text(root / name, min(left, MAX_FILE_BYTES))
        if content is None:
            unread.append(name)
            continue
        left -= len(content)
        parts.append(_new_file(name, content, is_executable=os.access(root / name, os.X_OK)))
    notes = [f"New file, not saved: {name!r}\n" for name in unread]
    if len(names) > MAX_NEW_FILES:
        notes.append(f"New files, not saved: {len(names) - MAX_NEW_FILES} more\n")
    return "".join([*notes, *parts])  # `git apply` ignores what stands before a diff


def _read_text(file: Path, limit: int) -> str | None:
    """Return the content of a regular text file of limited size; None for anything else, such as a link or a pipe."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = opened.read(limit + 1)
        is_text = len(data) <= limit and b"\0" not in data and file.as_posix().isprintable() and '"' not in file.name
        return data.decode("utf-8") if is_text else None
    except (OSError, UnicodeDecodeError):
        return None


def _new_file(name: str, content: str, *, is_executable: bool) -> str:
    """Return the diff that makes a file, as `git diff` writes it."""
    head = f"diff --git a/{name} b/{name}\nnew file mode {'100755' if is_executable else '100644'}\n"
    if not content:
        return head
    lines = content.removesuffix("\n").split("\n")
    body = "".join(f"+{line}\n" for line in lines)
    end = "" if content.endswith("\n") else "\\ No newline at end of file\n"
    return f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n{body}{end}"
