"""How Sphinx builds these pages: `make docs`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402
from reference_pages import with_pages_here, write_pages  # noqa: E402

project = "Loci"
release = version = settings.VERSION
project_copyright = "Loci's contributors, Apache 2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "README.md"]
source_suffix = {".md": "markdown"}
nitpicky = False  # Types of the docstrings have no pages of their own.

# Headings have the anchors that a repository's own pages give them.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "separated"

html_theme = "furo"
html_title = f"Loci {release}"
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
# Nothing of the output is fetched from elsewhere.
html_theme_options = {"footer_icons": []}


# The list of decisions has links to them; the contents want them named once more.
DECISIONS = """
```{toctree}
:hidden:
:glob:

0*
```
"""


def setup(app: Sphinx) -> None:
    app.add_lexer("jsonl", JsonLexer)
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "reference"))
    app.connect("source-read", _lead_to_pages_here)


def _lead_to_pages_here(_app: Sphinx, page: str, source: list[str]) -> None:
    above = "../" * (page.count("/") + 1)
    source[0] = with_pages_here(source[0], above)
    if page == "adr/README":
        source[0] += DECISIONS
