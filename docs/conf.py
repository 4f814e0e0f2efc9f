"""Settings of the documentation's site: `make site`. Every warning is an error, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs" / "_ext")]  # the API reference reads the docstrings

project = "Rung"
version = release = re.findall(r'^__version__ = "(.+)"$', (ROOT / "src/rung/__init__.py").read_text(), re.MULTILINE)[0]
author = "the contributors of Rung"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "navigation",
    "public_api",
]
root_doc = "index"
exclude_patterns = ["_build", "pictures/*.txt"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as code hosts make them: every heading can be linked
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = f"Rung {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_domain_indices = False
html_show_sphinx = False
html_show_copyright = False

default_role = "code"  # docstrings write names as Markdown does
napoleon_use_ivar = True  # attributes are members already
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}  # a docstring describes the fields of its class
python_use_unqualified_type_names = True
add_module_names = False

copybutton_exclude = ".linenos, .gp, .go"
