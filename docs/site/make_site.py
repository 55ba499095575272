#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the site of the documentation: the Markdown pages of the repository by Sphinx, and below api/ what Doxygen made.

    make_site.py SPHINX_BUILD SOURCE_DIR WORK_DIR SITE_DIR [API_DIR]

The pages stay where they are: WORK_DIR gets a folder of links to the repository and to the pages that only the site has, so that
links between pages hold in both. A warning of Sphinx (a broken link, say) is an error.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SITE_PAGES = ("index.md", "reference.md", "results.md", "folders.md")


def link_pages(source, stage):
    """A folder of links: the repository without its builds, and the pages of the site at the top."""
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name != "build" and not entry.name.startswith("."):
            (stage / entry.name).symlink_to(entry)
    for page in SITE_PAGES:
        (stage / page).symlink_to(source / "docs/site" / page)


def mend_theme(sheet):
    """Debian's build of Furo imports a style sheet from the root of the server and has lost the colours of a system's dark theme."""
    text = re.sub(r"^@import url\(/.*\);\n", "", sheet.read_text(encoding="utf-8"))
    if "prefers-color-scheme" not in text:
        dark = re.search(r'body\[data-theme="dark"\] \{(.*?)\}', text, re.DOTALL).group(1)
        text += '@media not print {\n@media (prefers-color-scheme: dark) {\nbody[data-theme="auto"] {' + dark + "}\n}\n}\n"
    sheet.write_text(text, encoding="utf-8")


def main(sphinx, source, work, site, api):
    shutil.rmtree(site, ignore_errors=True)  # no page of the past stays
    link_pages(source, work / "pages")
    version = re.search(r"project\(gpusched VERSION ([\d.]+)", (source / "CMakeLists.txt").read_text()).group(1)
    result = subprocess.run([sphinx, "-q", "-E", "-W", "--keep-going", "-b", "html", "-c", source / "docs/site", "-d", work / "doctrees",
                             work / "pages", site], env={**os.environ, "GPUSCHED_VERSION": version, "LC_ALL": "C.UTF-8"}, check=False)
    if result.returncode == 0:
        mend_theme(site / "_static/styles/furo.css")
    if result.returncode == 0 and api:
        shutil.copytree(api, site / "api", dirs_exist_ok=True)
    return result.returncode


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *(pathlib.Path(word).resolve() for word in sys.argv[2:5]), sys.argv[5] if len(sys.argv) == 6 else None))
