"""Settings of the documentation site: Sphinx, with pages in Markdown (MyST) and docstrings in Google style.

`make docs` builds it into `out/docs`, with warnings as errors. The site needs no network to be read.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_ext"), *(str(ROOT / folder) for folder in (".", "scheduler", "envs", "training"))]

import simengine  # noqa: E402 (its folder must be on the path first)

project = "simengine"
author = "simengine authors"
copyright = author
release = version = simengine.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_ext"]
# A page names many words in backticks, as docstrings do; those are code.
default_role = "literal"

# Types stand once, in the signature; the text of an argument says shape and unit.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"simengine {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path: list[str] = []
