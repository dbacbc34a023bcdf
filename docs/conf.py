"""Sphinx configuration; `make docs` builds with warnings as errors."""

import sys
from pathlib import Path

import tacit

sys.path.insert(0, str(Path(__file__).parent))  # for `outputs`

project = "Tacit"
author = "The Tacit maintainers"
copyright = "2026, the Tacit maintainers"  # noqa: A001 - Sphinx requires this name
release = tacit.__version__

extensions = ["myst_parser", "outputs", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Tacit {release}"
html_static_path = ["_static"]
html_css_files = ["outputs.css"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "both"
autodoc_typehints_description_target = "documented"
maximum_signature_line_length = 100
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_custom_sections = ["Guarantee"]


def _keep_bars(_app, _what, _name, _object, _options, lines):
    """Let docstrings write |x| for an absolute value; reStructuredText would read a substitution."""
    for i, line in enumerate(lines):
        if ">>>" not in line and "``" not in line:
            lines[i] = line.replace("|", r"\|")


def setup(app):
    """Connect the hook."""
    app.connect("autodoc-process-docstring", _keep_bars)
    app.connect("autodoc-skip-member", _skip_routing)


def _skip_routing(_app, _what, name, _object, _skip, _options):
    """Leave out the methods by which scikit-learn routes metadata; they are its own, in its own words."""
    return True if name.startswith("set_") and name.endswith("_request") else None
