"""Checkpoints on real repositories: what is kept, what comes back, and what is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rung
from rung.adapters.system.git import GitCheckpoint
from rung.core.domain import events as ev
from rung.core.domain.errors import CheckpointError, ConfigError, RungError
from rung.core.policy.parser import parse_ladder
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.engine.ports.recovery import Checkpoint

Listing = dict[bytes, tuple[str, bytes]]
REFS = "refs/rung/checkpoints/"
NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
SOMEBODY = ("-c", "user.name=Some Body", "-c", "user.email=some@body.example", "-c", "init.defaultBranch=main")


@pytest.fixture(autouse=True, scope="module")
def _no_configuration_of_ours() -> Iterator[None]:
    """The tests see git as it is out of the box, without an identity."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        for name, value in NOBODY.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "work")


def git(where: Path, *words: str) -> bytes:
    done = subprocess.run(["git", *SOMEBODY, *words], cwd=where, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def repository(where: Path, *words: str) -> Path:
    """A repository with one commit of some files and a rule to ignore others."""
    where.mkdir(parents=True)
    git(where, "init", "-q", *words)
    write(where, ".gitignore", b"*.log\nbuild/\n")
    write(where, "kept.txt", b"as it was\n")
    write(where, "sub/deep/file", b"deep\n")
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", "first")
    return where


def write(where: Path, name: str | bytes, content: bytes = b"", *, executable: bool = False) -> Path:
    path = where / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)
    return path


def listing(where: Path) -> Listing:
    """Every file: its path, what it is, and its contents. Git's own directories, and only they, are left out."""
    found: Listing = {}
    for path in where.rglob("*"):
        name = path.relative_to(where)
        if ".git" in name.parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            found[os.fsencode(name)] = ("link", os.fsencode(path.readlink()))
        else:
            found[os.fsencode(name)] = ("executable" if path.stat().st_mode & 0o100 else "plain", path.read_bytes())
    return found


def bookkeeping(where: Path) -> tuple[bytes, ...]:
    """All of git's own state that a user would notice: status, index, HEAD, branches, tags, stash, reflog."""
    status = git(where, "status", "--porcelain", "-z", "--ignored")
    index = Path(os.fsdecode(git(where, "rev-parse", "--path-format=absolute", "--git-path", "index").strip()))
    refs = b"\n".join(line for line in git(where, "show-ref", "--head").splitlines() if REFS.encode() not in line)
    head = git(where, "rev-parse", "--symbolic-full-name", "HEAD")
    return status, index.read_bytes(), refs, head, git(where, "reflog"), git(where, "stash", "list")


def references(where: Path) -> list[str]:
    return git(where, "for-each-ref", "--format=%(refname)", REFS).decode().split()


def litter(where: Path) -> None:
    """What a rung that went wrong leaves behind."""
    write(where, "kept.txt", b"spoilt\n", executable=True)
    write(where, "garbage/one.tmp", b"garbage")
    shutil.rmtree(where / "sub")


def test_take_touches_nothing_but_its_own_ref(root: Path) -> None:
    """Taking a checkpoint changes no file, and neither index, HEAD, branches, stash, reflog nor status."""
    write(root, "stashed", b"x")
    git(root, "stash", "-u")
    write(root, "kept.txt", b"staged\n")
    git(root, "add", "kept.txt")
    write(root, "kept.txt", b"not staged\n")
    write(root, "new", b"untracked")
    write(root, "noise.log", b"ignored")
    (root / "sub/deep/file").unlink()
    files, before = listing(root), bookkeeping(root)
    reference = GitCheckpoint(root).take("a label")
    assert (listing(root), bookkeeping(root)) == (files, before)
    assert references(root) == [reference]
    assert not list((root / ".git").glob("rung-*"))


def test_the_reference_is_a_commit_on_top_of_head_with_the_label(root: Path) -> None:
    """A checkpoint is a commit that any git command can look at: label, parent, files."""
    git(root, "config", "i18n.commitEncoding", "ISO-8859-1")
    write(root, "new", b"untracked")
    reference = GitCheckpoint(root).take("replan\0 \udcff é")
    assert (
        git(root, "log", "-1", "--encoding=UTF-8", "--format=%s|%an", reference).decode()
        == "rung checkpoint: replan  ? é|rung\n"
    )
    assert git(root, "rev-parse", f"{reference}^") == git(root, "rev-parse", "HEAD")
    assert git(root, "show", f"{reference}:new") == b"untracked"


def test_restore_brings_everything_back(root: Path) -> None:
    """Changed and deleted files return, created ones go, with modes, links and names of any bytes."""
    names = [b"with space", b"new\nline", b"\xff\xfe.bin", b"-dash", b":(glob)x", b'"quoted"', b"tab\tbed", b"d/\xe9"]
    for name in names:
        write(root, name, name)
    write(root, "run.sh", b"#!/bin/sh\n", executable=True)
    (root / "link").symlink_to("sub/deep")
    (root / "dangling").symlink_to("nowhere")
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    for name in names:
        write(root, name, b"overwritten")
        (root / os.fsdecode(name)).rename(root / os.fsdecode(name + b".moved"))
    (root / "run.sh").chmod(0o644)
    (root / "link").unlink()
    write(root, "link/now-a-directory", b"")
    (root / "dangling").unlink()
    (root / "dangling").symlink_to("elsewhere")
    checkpoint.restore(reference)
    assert listing(root) == before
    assert not (root / "garbage").exists()


def test_files_and_directories_change_places(root: Path) -> None:
    """A file that became a directory, and a directory that became a file or a link, are put back."""
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    (root / "kept.txt").unlink()
    write(root, "kept.txt/inside/deeper", b"")
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to("kept.txt")
    checkpoint.restore(reference)
    assert listing(root) == before


def test_ignored_files_are_never_touched(root: Path) -> None:
    """Ignored files stay as they are now, whether older or younger than the checkpoint."""
    write(root, "old.log", b"old")
    write(root, "build/out", b"built")
    git(root, "config", "core.excludesFile", str(write(root.parent, "own-rules", b"*.own\n")))
    write(root / ".git", "info/exclude", b"*.mine\n")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    for name in ("old.log", "garbage/new.log", "build/more", "x.own", "x.mine"):
        write(root, name, b"now")
    write(root, "garbage/new.txt", b"now")
    checkpoint.restore(reference)
    left = {name for name, (_, content) in listing(root).items() if content == b"now"}
    assert left == {b"old.log", b"garbage/new.log", b"build/more", b"x.own", b"x.mine"}
    assert b"old" not in git(root, "ls-tree", "-r", "--name-only", reference)


def test_rules_deleted_since_do_not_expose_ignored_files(root: Path) -> None:
    """A file that was ignored at the checkpoint is not removed because its rule was."""
    write(root, "secret.log", b"the only copy")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    (root / ".gitignore").unlink()
    litter(root)
    checkpoint.restore(reference)
    assert (root / "secret.log").read_bytes() == b"the only copy"
    assert (root / ".gitignore").exists()


def test_rules_added_since_do_not_protect_garbage(root: Path) -> None:
    """Garbage goes even when a new rule ignores it, and can still be got back."""
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    write(root, ".gitignore", b"*\n")
    write(root, "garbage/.gitignore", b"*.tmp\n")
    write(root, "garbage/deep/.gitignore", b"*\n!.gitignore\n")
    write(root, "garbage/deep/hidden", b"")
    spoilt = listing(root)
    checkpoint.restore(reference)
    assert listing(root) == before
    checkpoint.restore(checkpoint.discarded)
    assert spoilt.items() <= listing(root).items()


def test_a_new_directory_that_ignores_itself_stays(root: Path) -> None:
    """A virtual environment or a cache made since is ignored by its own rules, and so left alone."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    write(root, ".venv/.gitignore", b"*\n")
    write(root, ".venv/lib", b"x")
    write(root, "garbage", b"x")
    checkpoint.restore(reference)
    assert (root / ".venv/lib").exists()
    assert not (root / "garbage").exists()


def test_a_file_both_tracked_and_ignored_is_kept(root: Path) -> None:
    """Ignore rules do not count for files that git tracks."""
    write(root, "tracked.log", b"tracked")
    git(root, "add", "-f", "tracked.log")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    write(root, "tracked.log", b"spoilt")
    checkpoint.restore(reference)
    assert (root / "tracked.log").read_bytes() == b"tracked"


def test_what_is_discarded_can_be_got_back(root: Path) -> None:
    """A restore keeps what it discards, so that restoring `discarded` undoes it."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    spoilt = listing(root)
    checkpoint.restore(reference)
    assert checkpoint.discarded in references(root)
    checkpoint.restore(checkpoint.discarded)
    assert listing(root) == spoilt


def test_nothing_to_restore_keeps_nothing(root: Path) -> None:
    """Restoring what is already there leaves no further checkpoint and no reference in `discarded`."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    checkpoint.restore(reference)
    assert checkpoint.discarded == ""
    assert references(root) == [reference]


def test_commits_made_since_stay(root: Path) -> None:
    """Restore moves neither HEAD nor branch nor index: the files return, the commits stay where they were made."""
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    git(root, "checkout", "-q", "-b", "elsewhere")
    litter(root)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "garbage")
    after = bookkeeping(root)[1:]
    checkpoint.restore(reference)
    assert listing(root) == before
    shown = git(root, "status", "--porcelain").decode()
    assert "kept.txt" in shown
    assert git(root, "rev-parse", f"{checkpoint.discarded}^") == git(root, "rev-parse", "elsewhere")
    git(root, "checkout", "-q", "-f", "elsewhere")
    assert bookkeeping(root)[2:] == (after[1], after[2], *bookkeeping(root)[4:])
    git(root, "reset", "-q", "--soft", f"{reference}^")


def test_the_index_stays_as_it_is(root: Path) -> None:
    """Restore does not write to the user's index."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    git(root, "add", "-A")
    index = (root / ".git/index").read_bytes()
    checkpoint.restore(reference)
    assert (root / ".git/index").read_bytes() == index


def test_a_repository_without_commits(tmp_path: Path) -> None:
    """The first commit need not have been made, and the work tree may be empty."""
    git(tmp_path, "init", "-q")
    checkpoint = GitCheckpoint(tmp_path)
    empty = checkpoint.take("empty")
    write(tmp_path, "new", b"x")
    full = checkpoint.take("full")
    checkpoint.restore(empty)
    assert listing(tmp_path) == {}
    checkpoint.restore(full)
    assert listing(tmp_path) == {b"new": ("plain", b"x")}
    assert git(tmp_path, "log", "--format=%P", full) == b"\n"


def test_a_subdirectory_means_the_whole_work_tree(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint from a subdirectory keeps all, and is restored even when that directory is gone."""
    before = listing(root)
    monkeypatch.chdir(root / "sub/deep")
    checkpoint = GitCheckpoint()
    reference = checkpoint.take("x")
    monkeypatch.chdir(root)
    litter(root)
    checkpoint.restore(reference)
    assert listing(root) == before


@pytest.mark.parametrize("bare", [False, True])
def test_linked_work_trees_are_kept_apart(tmp_path: Path, root: Path, *, bare: bool) -> None:
    """A linked work tree, also of a bare repository, has its own checkpoints, though the refs are shared."""
    if bare:
        git(tmp_path, "clone", "-q", "--bare", str(root), "main")
    main = tmp_path / "main" if bare else root
    git(main, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    git(main, "worktree", "add", "-q", str(tmp_path / "two"), "-b", "two")
    one, two = GitCheckpoint(tmp_path / "one"), GitCheckpoint(tmp_path / "two/sub")
    first, second = one.take("x"), two.take("x")
    before = listing(tmp_path / "two")
    litter(tmp_path / "two")
    with pytest.raises(CheckpointError, match="another work tree"):
        two.restore(first)
    assert one.prune(keep=0) == (first,)
    two.restore(second)
    assert listing(tmp_path / "two") == before


def test_no_setting_changes_a_byte(root: Path) -> None:
    """Line endings, filters, keywords and encodings that git would convert come back as they were."""
    attributes = (
        b"*.txt text\n*.crlf text eol=crlf\n*.up filter=up\n*.id ident\n*.utf text working-tree-encoding=UTF-16\n"
    )
    for setting, value in (
        ("core.autocrlf", "true"),
        ("core.safecrlf", "true"),
        ("core.fileMode", "false"),
        ("core.symlinks", "false"),
        ("filter.up.clean", "tr a-z A-Z"),
        ("filter.up.smudge", "tr A-Z a-z"),
        ("filter.up.required", "true"),
    ):
        git(root, "config", setting, value)
    write(root, ".gitattributes", attributes)
    write(root, "mixed.txt", b"lf\ncrlf\r\nlf\n")
    write(root, "lf.crlf", b"lf\n")
    write(root, "crlf", b"crlf\r\n")
    write(root, "Mixed.up", b"MiXeD")
    write(root, "keyword.id", b"$Id: not this $ $Id$")
    write(root, "not-utf-16.utf", b"odd")
    write(root, "run", b"", executable=True)
    (root / "link").symlink_to("run")
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    for name in before:
        (root / os.fsdecode(name)).unlink()
    checkpoint.restore(reference)
    assert listing(root) == before


def test_hooks_and_signing_do_not_run(root: Path, tmp_path: Path) -> None:
    """No hook of the user's runs, nothing is signed, and nobody has to have told git who they are."""
    git(root, "config", "commit.gpgSign", "true")
    git(root, "config", "gpg.program", "/nonexistent")
    git(root, "config", "core.hooksPath", str(tmp_path / "hooks"))
    git(root, "config", "user.useConfigOnly", "true")
    git(root, "config", "core.fsmonitor", str(tmp_path / "hooks/fsmonitor"))
    for name in (
        "fsmonitor",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "pre-commit",
        "post-commit",
    ):
        write(tmp_path, f"hooks/{name}", f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n".encode(), executable=True)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    checkpoint.restore(reference)
    checkpoint.prune(0)
    assert not list(tmp_path.glob("ran-*"))


def test_the_environment_of_a_hook_does_not_lead_astray(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT_DIR and its like, as set while a hook runs, do not lead to another repository or index."""
    other = repository(tmp_path / "other")
    for name, value in (("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/index"), ("GIT_WORK_TREE", "")):
        monkeypatch.setenv(name, str(other / value))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    before = listing(root)
    litter(root)
    checkpoint.restore(reference)
    assert listing(root) == before
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_LITERAL_PATHSPECS"):
        monkeypatch.delenv(name)
    assert references(other) == []


def test_repositories_inside_are_left_alone(root: Path, tmp_path: Path) -> None:
    """Submodules and other repositories below, with or without commits, are neither kept nor changed."""
    library = repository(tmp_path / "library")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "module")
    git(root, "commit", "-q", "-m", "module")
    git(root, "config", "submodule.recurse", "true")
    repository(root / "cloned/before")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    write(root / "module", "kept.txt", b"newer")
    git(root / "module", "commit", "-q", "-a", "-m", "newer")
    repository(root / "cloned/since")
    (root / "empty").mkdir()
    git(root / "empty", "init", "-q")
    write(root / "empty", "file", b"x")
    inside = {name: listing(root / name) for name in ("module", "cloned", "empty")}
    checkpoint.restore(reference)
    assert {name: listing(root / name) for name in inside} == inside
    assert (root / "kept.txt").read_bytes() == b"as it was\n"
    assert not (root / "garbage").exists()


def test_a_directory_that_became_a_repository_is_still_restored(root: Path) -> None:
    """`git init` in a directory that was kept does not hide its files from the restore."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    git(root / "sub", "init", "-q")
    write(root, "sub/deep/file", b"spoilt")
    git(root / "sub", "add", "-A")
    git(root / "sub", "commit", "-q", "-m", "x")
    checkpoint.restore(reference)
    assert (root / "sub/deep/file").read_bytes() == b"deep\n"
    assert (root / "sub/.git").is_dir()


@pytest.mark.parametrize(
    "what", ["a file", "a directory", "a parent", "a linked parent", "a repository", "a bare link"]
)
def test_what_must_not_be_touched_and_is_in_the_way_stops_the_restore(root: Path, what: str) -> None:
    """Where a kept file cannot be written without losing an ignored one or a repository, both are left."""
    write(root, "x.log/y", b"kept")
    git(root, "add", "-f", "x.log/y")
    write(root, "z/kept", b"kept")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    shutil.rmtree(root / "x.log")
    if what == "a file":
        write(root, "x.log", b"ignored")
    elif what == "a linked parent":
        (root / "x.log").symlink_to("sub")
    elif what == "a directory":
        (root / "kept.txt").unlink()
        write(root, "kept.txt/more.log", b"ignored")
    elif what == "a bare link":
        (root / "kept.txt").unlink()
        (root / "kept.txt").mkdir()
        (root / "kept.txt/more.log").symlink_to(".")
    elif what == "a parent":
        write(root, "x.log", b"ignored")
        write(root, ".gitignore", b"")
    else:
        (root / "kept.txt").unlink()
        repository(root / "kept.txt/inside")
    before = listing(root)
    with pytest.raises(CheckpointError, match=r"blocks .*the state before this restore: refs/rung"):
        checkpoint.restore(reference)
    after = listing(root)
    if what == "a parent":
        assert before.pop(b".gitignore") != after.pop(b".gitignore")
    assert after == before


def test_a_merge_that_stopped_half_way_is_kept(root: Path) -> None:
    """Conflicted files are kept with their markers, and the merge can go on after take and restore."""
    git(root, "checkout", "-q", "-b", "side")
    write(root, "kept.txt", b"theirs\n")
    git(root, "rm", "-q", "-r", "sub")
    git(root, "commit", "-q", "-a", "-m", "theirs")
    git(root, "checkout", "-q", "main")
    write(root, "kept.txt", b"ours\n")
    write(root, "sub/deep/file", b"ours\n")
    git(root, "commit", "-q", "-a", "-m", "ours")
    subprocess.run(["git", *SOMEBODY, "merge", "-q", "side"], cwd=root, capture_output=True, check=False)
    shutil.rmtree(root / "sub")
    before, state = listing(root), bookkeeping(root)
    assert b"<<<<<<<" in before[b"kept.txt"][1]
    assert b"sub/deep/file" not in before
    assert git(root, "ls-files", "--unmerged", "sub")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    assert bookkeeping(root) == state
    write(root, "kept.txt", b"spoilt")
    write(root, "sub/deep/file", b"spoilt")
    checkpoint.restore(reference)
    assert listing(root) == before
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "merged")


@pytest.mark.parametrize("options", [(), ("--cone", "--sparse-index")])
def test_a_sparse_checkout_stays_sparse(root: Path, options: tuple[str, ...]) -> None:
    """Files that a sparse checkout leaves out are neither missed nor brought in."""
    write(root, "other/file", b"x")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "more")
    git(root, "sparse-checkout", "set", *options, "other")
    before, state = listing(root), bookkeeping(root)
    assert b"sub/deep/file" not in before
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    write(root, "other/file", b"spoilt")
    write(root, "sub/deep/file", b"spoilt")
    checkpoint.restore(reference)
    assert listing(root) == before
    status, _, *others = bookkeeping(root)
    assert (status, *others) == (state[0], *state[2:])


def test_sha256_repositories(tmp_path: Path) -> None:
    """The object format is the repository's."""
    root = repository(tmp_path / "work", "--object-format=sha256")
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    checkpoint.restore(reference)
    assert listing(root) == before


def test_a_root_with_an_odd_name(tmp_path: Path) -> None:
    """The path of the work tree may hold anything a path may hold."""
    root = repository(tmp_path / os.fsdecode(b'a "b\\\n\xff #;'))
    write(root / ".git", "rules", b"*.own\n")
    git(root, "config", "core.excludesFile", ".git/rules")
    before = listing(root)
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    write(root, "x.own", b"")
    checkpoint.restore(reference)
    assert listing(root) == {**before, b"x.own": ("plain", b"")}


def test_garbage_collection_does_not_lose_a_checkpoint(root: Path) -> None:
    """The ref keeps the files alive through a full collection."""
    write(root, "new", b"untracked")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    (root / "new").unlink()
    git(root, "gc", "-q", "--prune=now")
    checkpoint.restore(reference)
    assert (root / "new").read_bytes() == b"untracked"


def test_prune_drops_the_oldest(root: Path) -> None:
    """The newest stay, the others can no longer be restored, and pruning twice is harmless."""
    checkpoint = GitCheckpoint(root)
    taken = [checkpoint.take(str(number)) for number in range(5)]
    assert checkpoint.prune(keep=2) == tuple(taken[:3])
    assert references(root) == taken[3:]
    assert checkpoint.prune(keep=2) == checkpoint.prune() == ()
    with pytest.raises(CheckpointError, match="pruned"):
        checkpoint.restore(taken[0])
    with pytest.raises(ConfigError, match="keep: -1 is invalid"):
        checkpoint.prune(keep=-1)


@pytest.mark.parametrize("reference", ["", "HEAD", "refs/heads/main", REFS, f"{REFS}x^", "--help"])
def test_an_unknown_reference_is_refused(root: Path, reference: str) -> None:
    """Only what `take` returned can be restored, and the message names what was given."""
    with pytest.raises(CheckpointError, match="is not a checkpoint of") as caught:
        GitCheckpoint(root).restore(reference)
    assert repr(reference) in str(caught.value)


def test_where_there_is_no_work_tree(tmp_path: Path, root: Path) -> None:
    """No repository, a bare one, a git directory, a directory that is not there: each is said."""
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    for directory, words in (
        (tmp_path, "not a git repository"),
        (bare, "bare"),
        (root / ".git", "git directory"),
        (tmp_path / "absent", "No such file or directory"),
    ):
        with pytest.raises(CheckpointError, match=words) as caught:
            GitCheckpoint(directory).take("x")
        assert str(directory) in str(caught.value)
        assert isinstance(caught.value, RungError)


def test_a_repository_that_vanished(root: Path, tmp_path: Path) -> None:
    """When the git directory is gone, an outer repository is not taken for it."""
    git(tmp_path, "init", "-q")
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    shutil.rmtree(root / ".git")
    outer = GitCheckpoint(tmp_path).take("x")
    for call in (lambda: checkpoint.take("x"), lambda: checkpoint.restore(reference), lambda: checkpoint.prune(0)):
        with pytest.raises(CheckpointError):
            call()
    assert references(tmp_path) == [outer]


def test_without_git(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the git command is missing, that is what the error says."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"cannot run git in .*'git'"):
        GitCheckpoint(root).take("x")


def meddling_git(where: Path, before: str, after: str) -> str:
    """A PATH on which somebody else is busy in the work tree just before and after files are put back."""
    moving = 'case " $* " in *" read-tree -m "*)'
    lines = ["#!/bin/sh", f"{moving} {before};; esac", f'{shutil.which("git")} "$@"', "code=$?"]
    write(where, "bin/git", "\n".join([*lines, f"{moving} {after};; esac", "exit $code", ""]).encode(), executable=True)
    return f"{where / 'bin'}{os.pathsep}{os.environ['PATH']}"


def test_a_file_changed_while_restoring_stops_it(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody writes after the discarded state was kept is not overwritten."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    monkeypatch.setenv("PATH", meddling_git(tmp_path, "echo mine >kept.txt", ":"))
    with pytest.raises(
        CheckpointError, match=r"kept\.txt.* not uptodate(.|\n)*the state before this restore: refs/rung"
    ):
        checkpoint.restore(reference)
    assert (root / "kept.txt").read_bytes() == b"mine\n"


def test_a_restore_that_did_not_come_off_is_said(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore looks at what it did, and names a file that is not as it was."""
    checkpoint = GitCheckpoint(root)
    reference = checkpoint.take("x")
    litter(root)
    monkeypatch.setenv("PATH", meddling_git(tmp_path, ":", "echo late >late.txt"))
    with pytest.raises(CheckpointError, match=r"'late\.txt' still differs .*the state before this restore: refs/rung"):
        checkpoint.restore(reference)


def test_a_file_that_cannot_be_kept_fails_the_take(root: Path) -> None:
    """Half a checkpoint is none, even where the user told git to pass over errors."""
    git(root, "config", "add.ignoreErrors", "true")
    write(root, "git~1", b"a name git does not take")
    with pytest.raises(CheckpointError, match="git~1"):
        GitCheckpoint(root).take("x")
    assert references(root) == []


def test_processes_may_take_at_once(root: Path) -> None:
    """Processes that take and prune at the same time each get a whole checkpoint of their own."""
    for number in range(50):
        write(root, f"many/{number}", str(number).encode() * 100)
    program = (
        "import sys; from rung.adapters.system.git import GitCheckpoint\n"
        "c = GitCheckpoint(sys.argv[1])\n"
        "for n in range(4): print(c.take(f'{sys.argv[2]} {n}')); c.prune(keep=14)\n"
    )
    commands = [[sys.executable, "-c", program, str(root), str(number)] for number in range(4)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    taken = sorted(line for process in running for line in process.communicate()[0].split())
    assert [process.returncode for process in running] == [0] * 4
    assert len(set(taken)) == 16
    assert references(root) == taken[2:]
    assert len({git(root, "rev-parse", f"{reference}^{{tree}}") for reference in references(root)}) == 1


NAMES = [b"a", b"b c", b"d", b"d/e", b"d/f/g", b"n\nl", b"\xff", b"x.log", b"d/y.log", b".gitignore", b"d/.gitignore"]
name = st.sampled_from(NAMES)
content = st.sampled_from([b"", b"one\n", b"two\r\n", b"*\n", b"a\n", b"!*.log\n", b"*.log\n", b"d/\n"])
edit = st.one_of(
    st.tuples(st.just("write"), name, content),
    st.tuples(st.just("delete"), name, st.none()),
    st.tuples(st.just("chmod"), name, st.none()),
    st.tuples(st.just("rename"), name, name),
    st.tuples(st.just("link"), name, name),
    st.tuples(st.just("git"), st.sampled_from([b"add", b"commit", b"rm"]), st.none()),
)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def clear_the_way(root: Path, path: Path) -> None:
    """So that a file can be written there: parents are directories, and it is not one."""
    for parent in reversed(path.relative_to(root).parents[:-1]):
        if (root / parent).is_symlink() or not (root / parent).is_dir():
            remove(root / parent)
            (root / parent).mkdir()
    remove(path)


def apply(root: Path, step: tuple[str, bytes, bytes | None]) -> None:
    verb, what, more = step
    path = root / os.fsdecode(what)
    if verb == "git":
        words = {b"add": ("add", "-A"), b"commit": ("commit", "-qam", "x", "--allow-empty"), b"rm": ("rm", "-qrf", ".")}
        subprocess.run(["git", *SOMEBODY, *words[what]], cwd=root, capture_output=True, check=False)
    elif verb == "delete" and os.path.lexists(path):
        remove(path)
    elif verb == "chmod" and path.is_file() and not path.is_symlink():
        path.chmod(path.stat().st_mode ^ 0o111)
    elif verb == "rename" and os.path.lexists(path) and more is not None and not (what + b"/").startswith(more + b"/"):
        if not (more + b"/").startswith(what + b"/"):
            clear_the_way(root, root / os.fsdecode(more))
            if os.path.lexists(path):
                path.rename(root / os.fsdecode(more))
    elif verb in ("write", "link") and more is not None:
        clear_the_way(root, path)
        if verb == "write":
            path.write_bytes(more)
        else:
            path.symlink_to(os.fsdecode(more))


def without_rules(files: Listing) -> Listing:
    return {name: entry for name, entry in files.items() if not name.endswith(b".gitignore")}


def kept(root: Path) -> set[bytes]:
    """The files that are tracked, or untracked and not ignored, as the real repository sees it."""
    names = set(git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0"))
    return names & listing(root).keys()


def ignored(root: Path, names: set[bytes]) -> set[bytes]:
    """Those that a rule matches, tracked or not."""
    words = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(words, cwd=root, input=b"\0".join(sorted(names)), capture_output=True, check=False)
    return set(done.stdout.split(b"\0")) & names


@settings(max_examples=12, deadline=None)
@given(first=st.lists(edit, max_size=8), then=st.lists(edit, max_size=8))
def test_restore_after_take_is_the_identity(first: Any, then: Any) -> None:
    """Whatever was there and whatever is done to it, every kept file returns and no ignored one is touched."""
    with tempfile.TemporaryDirectory() as made:
        root = repository(Path(made) / "work")
        for step in first:
            apply(root, step)
        state, before = bookkeeping(root), listing(root)
        checkpoint = GitCheckpoint(root)
        reference = checkpoint.take("x")
        assert (bookkeeping(root), listing(root)) == (state, before)
        ours = kept(root)
        for step in then:
            apply(root, step)
        spoilt, index = listing(root), (root / ".git/index").read_bytes()
        try:
            checkpoint.restore(reference)
        except CheckpointError as error:
            blocked = str(error)
        else:
            blocked = ""
        if blocked:
            assert "blocks" in blocked
            assert without_rules(listing(root)) == without_rules(spoilt)
            return
        after = listing(root)
        assert {name: after.get(name) for name in ours} == {name: before[name] for name in ours}
        others = after.keys() - ours
        assert ignored(root, others) == others
        assert {name: after[name] for name in others} == {name: spoilt[name] for name in others}
        assert (root / ".git/index").read_bytes() == index
        if checkpoint.discarded:
            checkpoint.restore(checkpoint.discarded)
        assert spoilt.items() <= listing(root).items()


LADDER = parse_ladder(
    {
        "name": "rollback",
        "rungs": [
            {"action": "retry", "tries": 1},
            {"action": "nudge"},
            {"action": "replan", "rollback": True},
            {"action": "fallback"},
            {"action": "force-done", "tries": 0},
        ],
        "entry": {"server_error": "retry"},
        "default_entry": "nudge",
    }
)


@pytest.mark.parametrize("retried", [False, True])
def test_a_rung_that_fails_is_undone(root: Path, *, retried: bool) -> None:
    """A replan that leaves garbage and fails, retried or not, is rolled back before the next rung's attempt."""
    seen: list[Listing] = []
    wrong = rung.AttemptError("wrong", finding="goal_misaligned")

    def work(request: rung.Request) -> Exception:
        write(root, "half/done.txt", b"worth keeping")
        seen.append(listing(root))
        return wrong

    def spoil(request: rung.Request) -> Exception:
        litter(root)
        seen.append(listing(root))
        return HttpError(500) if retried else wrong

    def finish(request: rung.Request) -> str:
        seen.append(listing(root))
        return "done"

    checkpoint: Checkpoint = GitCheckpoint(root)
    attempt = Script(work, work, spoil, *([wrong] if retried else []), finish)
    outcome = rung.recover_sync(
        attempt,
        rung.Request(prompt="p", model="small"),
        policy=rung.policy(LADDER, models=["small", "large"]),
        checkpoint=checkpoint,
        clock=FakeClock(),
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
    )
    assert outcome.status is rung.Status.RECOVERED
    first, nudged, spoilt, after = seen
    assert first == nudged == after == listing(root)
    assert spoilt != after
    undone = [event for event in outcome.events if isinstance(event, ev.RolledBack)]
    assert [(event.rung, event.reference in references(root)) for event in undone] == [(2, True)]
