"""Checkpoints of a git work tree: snapshots of all files, stored outside the branches.

Each operation uses a temporary git directory with its own index, which writes objects into the real repository. The
user's index, HEAD, branches and stash are never touched, and no configuration (line endings, filters, hooks, signing,
sparse checkouts) changes a byte.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import tempfile
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PREFIX: Final = "refs/rung/checkpoints/"
_REFERENCE: Final = re.compile(
    _PREFIX + "([0-9a-f]{8})-[0-9]{20}-[0-9a-f]{8}"
)  # work tree, UTC nanoseconds, random suffix
# Overrides all other attributes, so that bytes are stored unchanged. (`-working-tree-encoding` would be an error.)
_ATTRIBUTES: Final = b"* -text !eol !crlf !ident !filter !working-tree-encoding\n"
_SETTINGS: Final = (
    f"core.hooksPath={os.devnull}",  # else post-index-change and reference-transaction would run
    "core.fsmonitor=false",
    "core.filesRefLockTimeout=5000",  # milliseconds for which concurrent prunes wait
    "i18n.commitEncoding=utf-8",
    *(("core.fileMode=true", "core.symlinks=true") if os.name == "posix" else ()),
)
_OPTIONS: Final = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_IDENTITY: Final = {f"GIT_{who}_{what}": "rung" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_ENVIRONMENT: Final = {**_IDENTITY, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_INHERITED: Final = ("GIT_CONFIG", "GIT_CEILING", "GIT_DISCOVERY", "GIT_EXEC")  # not a hook's GIT_DIR or GIT_INDEX_FILE


class GitCheckpoint:
    """Saves and restores the files of the whole work tree that contains `directory`.

    Saved are tracked files, and untracked files that are not ignored: contents, the executable bit, symbolic links,
    and deletions. Not saved and not changed: ignored files, empty directories, other permission bits, times, and nested
    repositories, including submodules.

    `take` reads every saved file and blocks meanwhile. Checkpoints stay until `prune` deletes them. Requires git 2.29.
    """

    def __init__(self, directory: str | os.PathLike[str] = ".") -> None:
        self.directory = Path(directory).absolute()
        self.discarded = ""
        self._cached_work_tree: _WorkTree | None = None

    def take(self, label: str) -> str:
        """Save the current files. Return the ref of a commit of them, whose parent is HEAD."""
        work = self._work_tree()
        with work.shadow() as shadow:
            shadow.edit(work.tracked())
            return work.save(shadow.add(), label)

    def restore(self, reference: str) -> None:
        """Restore the files: changed and deleted files return, files created since are removed.

        The discarded state is saved first, as another checkpoint: its reference is in `discarded` (empty if nothing
        had changed). HEAD, branch, index and stash stay as they are: a commit made since may be a person's, or pushed,
        so it stays on its branch, and `git status` shows how the files differ from it. To reset the branch too:
        `git reset --soft REFERENCE^`.

        The ignore rules of the checkpoint apply, not the current ones; only a new directory that ignores itself, such
        as .venv, stays. If an ignored file or another repository blocks the path of a saved file, this fails and
        removes neither.
        """
        work = self._work_tree()
        target = work.tree(reference)
        self.discarded = ""
        with work.shadow() as shadow:
            now = shadow.snapshot_since(target)
            if now == target:
                return
            label = f"discarded for {reference}"
            self.discarded = work.save(now, label)
            try:
                for more in shadow.restore_rules(now, target):
                    work.save(more, label, self.discarded)
                shadow.check_out(target)
                shadow.verify(target)
            except CheckpointError as error:
                raise CheckpointError(f"{error} (the state before this restore: {self.discarded})") from error

    def prune(self, keep: int = 20) -> tuple[str, ...]:
        """Delete all but the newest checkpoints of this work tree. Return the deleted references."""
        if keep < 0:
            raise ConfigError("keep", keep, "a whole number, 0 or more")
        work = self._work_tree()
        every = work.references()
        deleted = every[: max(0, len(every) - keep)]
        work.git("update-ref", "-z", "--stdin", stdin="".join(f"delete {name}\0\0" for name in deleted).encode())
        return tuple(deleted)

    def _work_tree(self) -> _WorkTree:
        if self._cached_work_tree is None:
            self._cached_work_tree = _open_work_tree(self.directory)
        return self._cached_work_tree


class _WorkTree(NamedTuple):
    """Work tree: its root, its private git directory, the common one of linked work trees, and sha1 or sha256."""

    root: Path
    private: Path
    common: Path
    hashing: str

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return _git(self.root, *arguments, stdin=stdin, GIT_DIR=self.private, GIT_WORK_TREE=self.root)

    def tag(self) -> str:
        """Return the prefix of this work tree's references. Linked work trees share one namespace of refs."""
        return sha256(os.fsencode(os.path.relpath(self.private, self.common))).hexdigest()[:8]

    def tracked(self) -> list[bytes]:
        """Return the entries of the user's index, without submodules. A file that is tracked and ignored is saved."""
        return [line for line in _records(self.git("ls-files", "-z", "--stage")) if not line.startswith(b"160000 ")]

    def save(self, tree: str, label: str, reference: str = "") -> str:
        """Commit this tree on top of HEAD and point a reference to the commit."""
        try:
            parents = ["-p", _line(self.git("rev-parse", "--verify", "HEAD^{commit}"))]
        except CheckpointError:  # the repository has no commit yet
            parents = []
        message = f"rung checkpoint: {label}\n".replace("\0", " ").encode(errors="replace")
        commit = _line(self.git("commit-tree", *parents, tree, stdin=message))
        reference = reference or f"{_PREFIX}{self.tag()}-{time.time_ns():020}-{secrets.token_hex(4)}"
        self.git("update-ref", reference, commit)
        return reference

    def references(self) -> list[str]:
        """Return the checkpoints of this work tree, oldest first."""
        return sorted(self.git("for-each-ref", "--format=%(refname)", f"{_PREFIX}{self.tag()}-*").decode().split())

    def tree(self, reference: str) -> str:
        match = _REFERENCE.fullmatch(reference)
        if match is not None and match[1] != self.tag():
            raise CheckpointError(f"{reference} was taken in another work tree than {self.root}")
        if match is None or reference not in self.references():
            raise CheckpointError(f"{reference!r} is not a checkpoint of {self.root}: never taken, or pruned")
        return _line(self.git("rev-parse", "--verify", f"{reference}^{{tree}}"))

    @contextmanager
    def shadow(self) -> Iterator[_Shadow]:
        """Create a temporary git directory for one operation."""
        try:
            with tempfile.TemporaryDirectory(prefix="rung-", dir=self.private, ignore_cleanup_errors=True) as made:
                _init_git_directory(Path(made), self)
                yield _Shadow(self, Path(made))
        except OSError as error:
            raise CheckpointError(f"{self.root}: {error}") from error


class _Shadow(NamedTuple):
    """Temporary index over the real work tree and object store."""

    work: _WorkTree
    directory: Path
    at: str = "index"

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        places = {"GIT_DIR": self.directory, "GIT_INDEX_FILE": self.directory / self.at}
        places |= {"GIT_WORK_TREE": self.work.root, "GIT_OBJECT_DIRECTORY": self.work.common / "objects"}
        return _git(self.work.root, *arguments, stdin=stdin, **places)

    def edit(self, entries: Iterable[bytes]) -> None:
        """Write entries (mode, object, tab, path; mode 0 removes) to the index, independent of the files."""
        lines = b"".join(entry + b"\0" for entry in entries)
        self.git("update-index", "-z", "--add", "--replace", "--index-info", stdin=lines)

    def add(self) -> str:
        """Add the files to the index, without nested repositories. Return its tree."""
        others = _records(self.git("ls-files", "-z", "--others", "--exclude-standard"))
        nested = [b":(exclude,literal)" + path for path in others if path.endswith(b"/")]
        self.git("add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=b"\0".join([b".", *nested]))
        return _line(self.git("write-tree"))

    def snapshot_since(self, tree: str) -> str:
        """Return the tree of the current files: those of `tree`, ignored or not, and new ones that are not ignored."""
        self.git("read-tree", tree)
        return self.add()

    def with_entries(self, tree: str, entries: Iterable[bytes]) -> str:
        """Return a tree with these entries replaced, built in a second index."""
        draft = self._replace(at="draft")
        draft.git("read-tree", tree)
        draft.edit(entries)
        return _line(draft.git("write-tree"))

    def diff_entries(self, old: str, new: str, *arguments: str) -> set[bytes]:
        """Return the entries that turn one tree into the other."""
        fields = _records(self.git("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", old, new, *arguments))
        heads = [head.split(b" ") for head in fields[::2]]
        return {head[1] + b" " + head[3] + b"\t" + path for head, path in zip(heads, fields[1::2], strict=True)}

    def restore_rules(self, now: str, target: str) -> Iterator[str]:
        """Restore the ignore rules, which determine what else to remove. Yield `now` with the files they had hidden."""
        whole = now
        while rules := self.diff_entries(now, target, "--", ":(glob)**/.gitignore"):
            self.check_out(self.with_entries(now, rules))
            now = self.snapshot_since(target)
            new = "--diff-filter=A"
            whole = self.with_entries(whole, self.diff_entries(whole, now, new) & self.diff_entries(target, now, new))
            yield whole

    def check_out(self, tree: str) -> None:
        """Change the files from the state of the index to this tree. Fails if a file has changed meanwhile."""
        index = set(_records(self.git("ls-files", "-z")))
        for path in _records(self.git("diff-index", "--cached", "-z", "--name-only", "--diff-filter=D", tree)):
            blocked = _blocking_path(self.work.root, Path(os.fsdecode(path)), index)
            if blocked:
                raise CheckpointError(
                    f"{blocked!r} blocks {os.fsdecode(path)!r} and is not removed: it is not part of the checkpoint"
                )
        self.git("read-tree", "-m", "-u", tree)

    def verify(self, tree: str) -> None:
        if self.add() != tree:
            paths = _records(self.git("diff-index", "--cached", "-z", "--name-only", tree))
            raise CheckpointError(f"{self.work.root} could not be restored: {os.fsdecode(paths[0])!r} still differs")


def _blocking_path(root: Path, path: Path, index: set[bytes]) -> str:
    """Return a path that blocks the file to be written and must not be removed, or an empty string."""
    for part in (*reversed(path.parents[:-1]), path):
        if os.fsencode(part.as_posix()) in index:
            return ""
        if os.path.lexists(root / part) and ((root / part).is_symlink() or not (root / part).is_dir()):
            return str(part)
    inside = (entry for entry in (root / path).rglob("*") if entry.is_symlink() or not entry.is_dir())
    names = (entry.relative_to(root).as_posix() for entry in inside)
    return next((name for name in names if os.fsencode(name) not in index), "")


def _open_work_tree(directory: Path) -> _WorkTree:
    def ask(option: str) -> str:
        return _line(_git(directory, "rev-parse", option))

    if ask("--is-inside-work-tree") != "true":
        raise CheckpointError(
            f"{directory} is not in a work tree: the repository is bare, or this is its git directory"
        )
    return _WorkTree(
        root=Path(ask("--show-toplevel")),
        private=Path(ask("--absolute-git-dir")).resolve(),
        common=(directory / ask("--git-common-dir")).resolve(),
        hashing=ask("--show-object-format"),
    )


def _init_git_directory(made: Path, work: _WorkTree) -> None:
    """Initialise a git directory with the user's settings and ignore rules, but without attributes."""
    for name in ("info", "refs"):
        (made / name).mkdir()
    (made / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (made / "info" / "attributes").write_bytes(_ATTRIBUTES)
    exclude = work.common / "info" / "exclude"
    if exclude.is_file():
        (made / "info" / "exclude").write_bytes(exclude.read_bytes())
    lines = ["[core]", "bare = false", "repositoryFormatVersion = 1", "[extensions]", f"objectFormat = {work.hashing}"]
    for config in (work.common / "config", work.private / "config.worktree"):
        path = str(config).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[include]\npath = "{path}"')
    (made / "config").write_bytes(os.fsencode("\n".join([*lines, ""])))


def _git(where: Path, *arguments: str, stdin: bytes = b"", **places: Path) -> bytes:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_INHERITED)}
    environment = {**inherited, **_ENVIRONMENT, **{name: str(place) for name, place in places.items()}}
    command = ["git", *_OPTIONS, *arguments]
    try:
        done = subprocess.run(  # noqa: S603  # no shell, and the arguments are constants: file names go through stdin
            command, cwd=where, env=environment, input=stdin, capture_output=True, check=False
        )
    except OSError as error:
        raise CheckpointError(f"cannot run git in {where}: {error}") from error
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise CheckpointError(f"git {arguments[0]} in {where}: {message}")
    return done.stdout


def _line(output: bytes) -> str:
    return os.fsdecode(output).removesuffix("\n")


def _records(output: bytes) -> list[bytes]:
    return [record for record in output.split(b"\0") if record]
