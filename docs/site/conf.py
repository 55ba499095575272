# SPDX-License-Identifier: Apache-2.0
"""Sphinx over the Markdown pages of the repository; make_site.py runs it."""
import html
import inspect
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
smartquotes = False  # it makes a dash of the "--" of options in running text
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


def mathml(node, block):
    """A formula as MathML; one that docutils cannot read is a warning, and so an error."""
    # The second parameter is `inline` in docutils before 0.22, `as_block` since.
    is_new = "as_block" in inspect.signature(latex2mathml.tex2mathml).parameters
    try:
        return latex2mathml.tex2mathml(node.astext(), block if is_new else not block)
    except Exception as error:  # its parser raises several kinds
        logging.getLogger(__name__).warning("no formula: %s: %s", node.astext(), error, location=node)
        return ""


def visit_math(translator, node):
    translator.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="math">{mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def name_links(_, __, source):
    """[replay.md](replay.md) reads well in a repository; here the text is the title of the page or heading that it leads to."""
    source[0] = re.sub(r"\[[\w./-]+\.md\](\([^)\s]+\))", r"[]\1", source[0])


def mark_wide_tables(_, doctree):
    """A table in code whose rule is longer than a line of the page gets the class of smaller letters (site.css)."""
    for block in doctree.findall(nodes.literal_block):
        if re.search(r"^-{119,}$", block.astext(), re.MULTILINE):
            block["classes"].append("wide")


def break_code_of_cells(_, doctree):
    """Code in cells of tables may break behind these characters and hyphens within words, and only there: columns can be narrow."""
    for cell in doctree.findall(nodes.entry):
        for literal in list(cell.findall(nodes.literal)):
            parts = re.split(r"(?<=[{,=_/+ ])(?=.)|(?<=\w-)(?=.)", literal.astext())
            text = "<wbr>".join(f'<span class="pre">{html.escape(part)}</span>' for part in parts)
            literal.replace_self(nodes.raw("", f'<code class="docutils literal notranslate">{text}</code>', format="html"))


def setup(app):
    app.connect("source-read", name_links)
    app.connect("doctree-read", mark_wide_tables)
    app.connect("doctree-read", break_code_of_cells)
    # MathML is drawn by browsers themselves: no script and no font of another site.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
