"""The Python examples of the documentation pass mypy and pyright in strict mode, as in a user's project."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    ROOT / "docs/tutorial.md",
    *sorted((ROOT / "docs/howto").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]
# Names that README leaves to the reader.
NAMES_OF_THE_READER: Final = (
    "async def my_agent(prompt: str, model: str = '', max_tokens: int | None = None) -> str: return prompt\n"
)
# Frameworks with annotations that pyright cannot resolve: what they leave unknown is not reported on their pages.
INCOMPLETE_FRAMEWORKS: Final = ("langchain", "langgraph")
UNKNOWN_TYPES: Final = "# pyright: " + ", ".join(
    f"{rule}=false"
    for rule in (
        "reportMissingTypeStubs",
        "reportUnknownVariableType",
        "reportUnknownMemberType",
        "reportUnknownArgumentType",
    )
)
ALLOWED_BY_MYPY: Final = '# mypy: disable-error-code="empty-body"'
# A page shows expressions with their value as a comment, and imports a name again where a reader may begin.
PYRIGHT: Final = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "reportUnusedExpression": False,
    "reportDuplicateImport": False,
}


def module_of(page: Path) -> str:
    """The blocks of a page as one module, since they are run one after another; with top-level `await`, in a coroutine."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    if not code:
        return ""
    if page.name == "README.md":
        code = f"{NAMES_OF_THE_READER}\n{code}"
    tree = compile(code, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if awaits(tree):
        code = f"async def page() -> None:\n{indent(code, '    ')}"
    is_incomplete = any(f"from {name}" in code for name in INCOMPLETE_FRAMEWORKS)
    return "\n".join([ALLOWED_BY_MYPY, *([UNKNOWN_TYPES] if is_incomplete else []), code])


def awaits(node: ast.AST) -> bool:
    """Whether code awaits outside of a function."""
    if isinstance(node, ast.Await | ast.AsyncWith | ast.AsyncFor):
        return True
    inner = (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.AsyncFunctionDef))
    return any(awaits(child) for child in inner)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one module for each page that has Python blocks, and for each program in `examples`."""
    folder = tmp_path_factory.mktemp("pages")
    for page in PAGES:
        code = module_of(page)
        if code:
            (folder / f"{page.parent.name}_{page.stem}.py".replace("-", "_").lower()).write_text(code)
    for program in (ROOT / "examples").glob("[!_]*.py"):
        shutil.copy(program, folder / f"examples_{program.name}")
    shutil.copy(Path(__file__).with_name("typed_api.py"), folder)
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    assert len(list(folder.glob("*.py"))) > 20
    return folder


def test_mypy_accepts_the_examples(modules: Path) -> None:
    """All examples pass mypy in strict mode; a body of three dots, which stands for the reader's code, is allowed."""
    # The project's own settings are strict. With its settings and cache, the SDKs of the pages are not read again.
    options = ("--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"))
    command = [sys.executable, "-m", "mypy", *options, str(modules)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pyright_accepts_the_examples(modules: Path) -> None:
    """All examples pass pyright in strict mode."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", "."]
    done = subprocess.run(command, cwd=modules, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
