"""Checkpoints of a git work tree: every file as it is, kept beside the history and put back when asked.

Git does the work in a shadow: a throw-away git directory with an index of its own that writes its objects
into the real repository. So the user's index, HEAD, branches and stash are never touched, and nothing that
is configured (line endings, filters, hooks, signing, sparse checkouts) changes a byte on the way.
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
_REFERENCE: Final = re.compile(_PREFIX + "([0-9a-f]{8})-[0-9]{20}-[0-9a-f]{8}")  # work tree, UTC nanoseconds, chance
# Weighs more than any other attribute: bytes are kept as they are. (`-working-tree-encoding` would be an error.)
_ATTRIBUTES: Final = b"* -text !eol !crlf !ident !filter !working-tree-encoding\n"
_SETTINGS: Final = (
    f"core.hooksPath={os.devnull}",  # post-index-change and reference-transaction would run
    "core.fsmonitor=false",
    "core.filesRefLockTimeout=5000",  # milliseconds that two prunes may wait for each other
    "i18n.commitEncoding=utf-8",
    *(("core.fileMode=true", "core.symlinks=true") if os.name == "posix" else ()),
)
_OPTIONS: Final = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_IDENTITY: Final = {f"GIT_{who}_{what}": "rung" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_OURS: Final = {**_IDENTITY, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_INHERITED: Final = ("GIT_CONFIG", "GIT_CEILING", "GIT_DISCOVERY", "GIT_EXEC")  # not a hook's GIT_DIR or GIT_INDEX_FILE


class GitCheckpoint:
    """Keeps and restores the files of the whole work tree that `directory` is in.

    Kept are tracked files, and untracked ones that are not ignored: contents byte for byte, the executable
    bit, symbolic links, and what is missing. Not kept, and left alone: ignored files, empty directories,
    other permission bits, times, and repositories inside this one, submodules included.

    A take reads every file it keeps, and blocks meanwhile. Checkpoints stay until `prune` drops them.
    Needs git 2.29 or newer.
    """

    def __init__(self, directory: str | os.PathLike[str] = ".") -> None:
        self.directory = Path(directory).absolute()
        self.discarded = ""
        self._found: _WorkTree | None = None

    def take(self, label: str) -> str:
        """Keep the files as they are now; returns a ref to a commit of them, whose parent is HEAD."""
        work = self._work_tree()
        with work.shadow() as shadow:
            shadow.edit(work.tracked())
            return work.keep(shadow.add(), label)

    def restore(self, reference: str) -> None:
        """Put the files back: what was changed or deleted returns, what was created since is removed.

        What this discards is kept first, as a checkpoint like any other: its reference is in `discarded`
        (empty when nothing had changed). HEAD, branch, index and stash stay where they are now: a commit
        made since may be a person's, or pushed, so it stays on its branch, and `git status` shows how the
        files differ from it. To go back there too: `git reset --soft REFERENCE^`.

        The checkpoint's ignore rules count, not today's; only a new directory that ignores itself, as .venv
        does, stays. Where an ignored file or another repository is in the way of a kept file, this fails and
        removes neither.
        """
        work = self._work_tree()
        target = work.tree(reference)
        self.discarded = ""
        with work.shadow() as shadow:
            now = shadow.since(target)
            if now == target:
                return
            label = f"discarded for {reference}"
            self.discarded = work.keep(now, label)
            try:
                for more in shadow.restore_rules(now, target):
                    work.keep(more, label, self.discarded)
                shadow.move(target)
                shadow.verify(target)
            except CheckpointError as error:
                raise CheckpointError(f"{error} (the state before this restore: {self.discarded})") from error

    def prune(self, keep: int = 20) -> tuple[str, ...]:
        """Drop all but the newest checkpoints of this work tree; returns the references that are gone."""
        if keep < 0:
            raise ConfigError("keep", keep, "a whole number, 0 or more")
        work = self._work_tree()
        every = work.references()
        gone = every[: max(0, len(every) - keep)]
        work.git("update-ref", "-z", "--stdin", stdin="".join(f"delete {name}\0\0" for name in gone).encode())
        return tuple(gone)

    def _work_tree(self) -> _WorkTree:
        if self._found is None:
            self._found = _find(self.directory)
        return self._found


class _WorkTree(NamedTuple):
    """A work tree, its own git directory, the one it shares with linked work trees, and sha1 or sha256."""

    root: Path
    private: Path
    common: Path
    hashing: str

    def git(self, *words: str, stdin: bytes = b"") -> bytes:
        return _git(self.root, *words, stdin=stdin, GIT_DIR=self.private, GIT_WORK_TREE=self.root)

    def tag(self) -> str:
        """What this work tree's references begin with: linked work trees share them all."""
        return sha256(os.fsencode(os.path.relpath(self.private, self.common))).hexdigest()[:8]

    def tracked(self) -> list[bytes]:
        """What the user's index knows, without submodules: a file both tracked and ignored is kept."""
        return [line for line in _records(self.git("ls-files", "-z", "--stage")) if not line.startswith(b"160000 ")]

    def keep(self, tree: str, label: str, reference: str = "") -> str:
        """Commit this tree on top of HEAD, and hold the commit by a reference."""
        try:
            parents = ["-p", _line(self.git("rev-parse", "--verify", "HEAD^{commit}"))]
        except CheckpointError:  # there is no commit yet
            parents = []
        message = f"rung checkpoint: {label}\n".replace("\0", " ").encode(errors="replace")
        commit = _line(self.git("commit-tree", *parents, tree, stdin=message))
        reference = reference or f"{_PREFIX}{self.tag()}-{time.time_ns():020}-{secrets.token_hex(4)}"
        self.git("update-ref", reference, commit)
        return reference

    def references(self) -> list[str]:
        """This work tree's checkpoints, oldest first."""
        return sorted(self.git("for-each-ref", "--format=%(refname)", f"{_PREFIX}{self.tag()}-*").decode().split())

    def tree(self, reference: str) -> str:
        known = _REFERENCE.fullmatch(reference)
        if known is not None and known[1] != self.tag():
            raise CheckpointError(f"{reference} was taken in another work tree than {self.root}")
        if known is None or reference not in self.references():
            raise CheckpointError(f"{reference!r} is no checkpoint of {self.root}: never taken, or pruned")
        return _line(self.git("rev-parse", "--verify", f"{reference}^{{tree}}"))

    @contextmanager
    def shadow(self) -> Iterator[_Shadow]:
        """A git directory for one call: nobody else's, and in no work tree."""
        try:
            with tempfile.TemporaryDirectory(prefix="rung-", dir=self.private, ignore_cleanup_errors=True) as made:
                _furnish(Path(made), self)
                yield _Shadow(self, Path(made))
        except OSError as error:
            raise CheckpointError(f"{self.root}: {error}") from error


class _Shadow(NamedTuple):
    """An index of our own over the real work tree and the real objects."""

    work: _WorkTree
    directory: Path
    at: str = "index"

    def git(self, *words: str, stdin: bytes = b"") -> bytes:
        places = {"GIT_DIR": self.directory, "GIT_INDEX_FILE": self.directory / self.at}
        places |= {"GIT_WORK_TREE": self.work.root, "GIT_OBJECT_DIRECTORY": self.work.common / "objects"}
        return _git(self.work.root, *words, stdin=stdin, **places)

    def edit(self, entries: Iterable[bytes]) -> None:
        """Put entries (mode, object, tab, path; mode 0 removes) into the index, whatever the files say."""
        lines = b"".join(entry + b"\0" for entry in entries)
        self.git("update-index", "-z", "--add", "--replace", "--index-info", stdin=lines)

    def add(self) -> str:
        """Take the files into the index, passing over repositories inside the work tree; returns its tree."""
        others = _records(self.git("ls-files", "-z", "--others", "--exclude-standard"))
        nested = [b":(exclude,literal)" + path for path in others if path.endswith(b"/")]
        self.git("add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=b"\0".join([b".", *nested]))
        return _line(self.git("write-tree"))

    def since(self, tree: str) -> str:
        """Take in the files of this tree, ignored by now or not, and new ones that are not ignored."""
        self.git("read-tree", tree)
        return self.add()

    def but(self, tree: str, entries: Iterable[bytes]) -> str:
        """This tree with these entries put in, made in another index."""
        draft = self._replace(at="draft")
        draft.git("read-tree", tree)
        draft.edit(entries)
        return _line(draft.git("write-tree"))

    def changes(self, old: str, new: str, *words: str) -> set[bytes]:
        """The entries that turn one tree into the other."""
        fields = _records(self.git("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", old, new, *words))
        heads = [head.split(b" ") for head in fields[::2]]
        return {head[1] + b" " + head[3] + b"\t" + path for head, path in zip(heads, fields[1::2], strict=True)}

    def restore_rules(self, now: str, target: str) -> Iterator[str]:
        """Put the ignore rules back: they say what else is ours to remove. Yields `now` with what they had hidden."""
        whole = now
        while rules := self.changes(now, target, "--", ":(glob)**/.gitignore"):
            self.move(self.but(now, rules))
            now = self.since(target)
            new = "--diff-filter=A"
            whole = self.but(whole, self.changes(whole, now, new) & self.changes(target, now, new))
            yield whole

    def move(self, tree: str) -> None:
        """Turn the files from what the index says into this tree; a file changed meanwhile stops it."""
        index = set(_records(self.git("ls-files", "-z")))
        for path in _records(self.git("diff-index", "--cached", "-z", "--name-only", "--diff-filter=D", tree)):
            blocked = _in_the_way(self.work.root, Path(os.fsdecode(path)), index)
            if blocked:
                raise CheckpointError(f"{blocked!r} is in the way of {os.fsdecode(path)!r} and not ours to remove")
        self.git("read-tree", "-m", "-u", tree)

    def verify(self, tree: str) -> None:
        if self.add() != tree:
            paths = _records(self.git("diff-index", "--cached", "-z", "--name-only", tree))
            raise CheckpointError(f"{self.work.root} could not be put back: {os.fsdecode(paths[0])!r} still differs")


def _in_the_way(root: Path, path: Path, index: set[bytes]) -> str:
    """What lies where a file is to be written and is not ours to remove; empty when nothing does."""
    for part in (*reversed(path.parents[:-1]), path):
        if os.fsencode(part.as_posix()) in index:
            return ""
        if os.path.lexists(root / part) and ((root / part).is_symlink() or not (root / part).is_dir()):
            return str(part)
    inside = (found for found in (root / path).rglob("*") if found.is_symlink() or not found.is_dir())
    names = (found.relative_to(root).as_posix() for found in inside)
    return next((name for name in names if os.fsencode(name) not in index), "")


def _find(directory: Path) -> _WorkTree:
    def ask(option: str) -> str:
        return _line(_git(directory, "rev-parse", option))

    if ask("--is-inside-work-tree") != "true":
        raise CheckpointError(f"{directory} is in no work tree: the repository is bare, or this is its git directory")
    return _WorkTree(
        root=Path(ask("--show-toplevel")),
        private=Path(ask("--absolute-git-dir")).resolve(),
        common=(directory / ask("--git-common-dir")).resolve(),
        hashing=ask("--show-object-format"),
    )


def _furnish(made: Path, work: _WorkTree) -> None:
    """Make a git directory with the user's settings and ignore rules, but without the attributes."""
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


def _git(where: Path, *words: str, stdin: bytes = b"", **places: Path) -> bytes:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_INHERITED)}
    environment = {**inherited, **_OURS, **{name: str(place) for name, place in places.items()}}
    command = ["git", *_OPTIONS, *words]
    try:
        done = subprocess.run(  # noqa: S603  # no shell, and the words are ours: file names go through stdin
            command, cwd=where, env=environment, input=stdin, capture_output=True, check=False
        )
    except OSError as error:
        raise CheckpointError(f"cannot run git in {where}: {error}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise CheckpointError(f"git {words[0]} in {where}: {said}")
    return done.stdout


def _line(output: bytes) -> str:
    return os.fsdecode(output).removesuffix("\n")


def _records(output: bytes) -> list[bytes]:
    return [record for record in output.split(b"\0") if record]
