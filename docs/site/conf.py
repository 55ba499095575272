# SPDX-License-Identifier: Apache-2.0
"""Sphinx over the Markdown pages of the repository; make_site.py runs it."""
import os
import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

project = "gpusched"
version = release = os.environ["GPUSCHED_VERSION"]
extensions = ["myst_parser"]
root_doc = "index"
include_patterns = ["*.md", "docs/**.md", "examples/**.md", "experiments/**.md", "traces/*.md", "traces/sample/*.md"]
exclude_patterns = ["docs/README.md", "docs/site"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
html_theme = "furo"
html_title = f"gpusched {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_search_summary = False  # it would fetch pages, which browsers forbid to pages opened from a disk
html_math_renderer = "mathml"
pygments_style = "default"
pygments_dark_style = "native"


def mathml(node, inline):
    """A formula as MathML; one that docutils cannot read is a warning, and so an error."""
    try:
        return latex2mathml.tex2mathml(node.astext(), inline=inline)
    except Exception as error:  # its parser raises several kinds
        logging.getLogger(__name__).warning("no formula: %s: %s", node.astext(), error, location=node)
        return ""


def visit_math(translator, node):
    translator.body.append(mathml(node, inline=True))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="math">{mathml(node, inline=False)}</div>')
    raise nodes.SkipNode


def name_links(_, __, source):
    """[replay.md](replay.md) reads well in a repository; here the text is the title of the page or heading that it leads to."""
    source[0] = re.sub(r"\[[\w./-]+\.md\](\([^)\s]+\))", r"[]\1", source[0])


def setup(app):
    app.connect("source-read", name_links)
    # MathML is drawn by browsers themselves: no script and no font of another site.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
