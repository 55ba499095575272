#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Jupyter notebooks of pages of the guide, docs/guide/NAME.ipynb beside docs/guide/NAME.md, without outputs.

    scripts/guide_notebooks.py [--check]

Text becomes cells of Markdown, blocks of Python and of the shell cells of code; blocks that are marked as left out stay text. With
--check nothing is written: exit code 1 if a notebook is not what its page gives. tests/docs_blocks_test.py runs the cells.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("first-figure", "sacct", "write-a-policy")
sys.path.insert(0, str(ROOT / "tests"))
import docs_blocks_test  # noqa: E402

START = """import os
import pathlib

while not pathlib.Path("traces/sample").is_dir():  # the root of the repository
    os.chdir("..")
"""


def code_of(block):
    """The code of a cell, or None where the block stays text."""
    if block.mark in ("skip", "output"):
        return None
    if block.mark == "file":
        return f"%%writefile {block.value}\n{block.text}"
    if block.language == "console":
        commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block.text, re.MULTILINE)
        return "%%bash\n" + "\n".join(commands) + "\n"
    if block.language in ("bash", "sh"):
        return "%%bash\n" + block.text
    return block.text if block.language == "python" else None


def cell(number, kind, text):
    found = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.strip("\n").splitlines(keepends=True)}
    return found | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def notebook(page):
    """The text of the notebook of a page."""
    cells, prose, end = [], "", 0
    text = re.sub(r"<!-- (?:file|prepare|behind|skip|output).*?-->\n", "", page, flags=re.DOTALL)
    blocks = docs_blocks_test.blocks_of(page)

    def flush():
        if prose.strip():
            cells.append(cell(len(cells), "markdown", prose))

    for block, match in zip(blocks, docs_blocks_test.FENCE.finditer(text), strict=True):
        prose += text[end:match.start()]
        code, end = code_of(block), match.end()
        if code is None:
            prose += "" if block.mark == "output" else match.group(0)
            continue
        flush()
        prose = ""
        if not any(one["cell_type"] == "code" for one in cells):
            cells.append(cell(len(cells), "code", START))
        cells.append(cell(len(cells), "code", code))
    prose += text[end:]
    flush()
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4,
                       "nbformat_minor": 5}, indent=1) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    made = {ROOT / f"docs/guide/{name}.ipynb": notebook((ROOT / f"docs/guide/{name}.md").read_text()) for name in PAGES}
    if sys.argv[1:]:
        changed = [file.name for file, text in made.items() if not file.exists() or file.read_text() != text]
        sys.exit(f"docs/guide: run scripts/guide_notebooks.py, which changes {', '.join(changed)}" if changed else 0)
    for file, text in made.items():
        file.write_text(text)
