"""Configuration of the documentation site: `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

import tvm

sys.path.insert(0, str(Path(__file__).parent))

project = "tvm"
author = "the tvm developers"
release = tvm.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "reference",
    "sphinx.ext.viewcode",
]
autodoc_typehints = "none"  # the text says more: shapes, units, what a callable gets
# Short names in annotations, such as Schedule, are those of several classes.
suppress_warnings = ["ref.python"]
exclude_patterns = ["examples", "**.ipynb_checkpoints"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# The tutorials carry no outputs in the repository; what the site shows is what the build printed.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True

html_theme = "furo"
html_title = "tvm"
html_static_path: list[str] = []
