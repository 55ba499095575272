#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the site of the documentation: the Markdown pages of the repository by Sphinx, and below api/ what Doxygen made.

    make_site.py SPHINX_BUILD SOURCE_DIR WORK_DIR SITE_DIR [API_DIR]

WORK_DIR gets a copy of the repository with the pages that only the site has at its top, so that links between pages hold in both.
A warning of Sphinx (a broken link, say) is an error.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SITE_PAGES = ("index.md", "reference.md", "results.md", "folders.md")


def copy_pages(source, stage):
    """A copy of the repository without its builds, with the pages of the site at the top. Links would not do: MyST 4 follows them
    and then knows no page by its place."""
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(source, stage, ignore=shutil.ignore_patterns("build", ".*", "__pycache__"))
    for page in SITE_PAGES:
        shutil.copy(source / "docs/site" / page, stage / page)


def mend_debian_theme(source, static):
    """Debian's build of Furo imports a style sheet from the root of the server, has lost the colours of a system's dark theme, and
    has a script that imports another one, which browsers refuse. PyPI's has none of this and stays as it is."""
    sheet, script = static / "styles/furo.css", static / "scripts/furo.js"
    text = re.sub(r"^@import url\(/.*\);\n", "", sheet.read_text(encoding="utf-8"))
    if "prefers-color-scheme" not in text:
        dark = re.search(r'body\[data-theme="dark"\] \{(.*?)\}', text, re.DOTALL).group(1)
        text += '@media not print {\n@media (prefers-color-scheme: dark) {\nbody[data-theme="auto"] {' + dark + "}\n}\n}\n"
    sheet.write_text(text, encoding="utf-8")
    if re.search(r"^import ", script.read_text(encoding="utf-8"), re.MULTILINE):
        shutil.copy(source / "docs/site/debian_furo.js", script)


def main(sphinx, source, work, site, api):
    shutil.rmtree(site, ignore_errors=True)  # no page of the past stays
    copy_pages(source, work / "pages")
    version = re.search(r"project\(gpusched VERSION ([\d.]+)", (source / "CMakeLists.txt").read_text()).group(1)
    result = subprocess.run([sphinx, "-q", "-E", "-W", "--keep-going", "-b", "html", "-c", source / "docs/site", "-d", work / "doctrees",
                             work / "pages", site], env={**os.environ, "GPUSCHED_VERSION": version, "LC_ALL": "C.UTF-8"}, check=False)
    if result.returncode == 0:
        mend_debian_theme(source, site / "_static")
    if result.returncode == 0 and api:
        shutil.copytree(api, site / "api", dirs_exist_ok=True)
    return result.returncode


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *(pathlib.Path(word).resolve() for word in sys.argv[2:5]), sys.argv[5] if len(sys.argv) == 6 else None))
