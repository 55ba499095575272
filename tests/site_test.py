#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the site of the documentation and looks at it.

    tests/site_test.py SOURCE_DIR BUILD_DIR CMAKE FOUND

Every link of every page leads to a file and an anchor that are there; nothing is taken from another site. In headless Chromium,
where that is installed: no request and no message on the console, also of pages with formulas, and the search finds.
Exit code 77 (skipped) with a line that says why where Sphinx is missing (FOUND is 0). Before that, planted errors must be found.
"""
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

ROOT, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(ROOT / "scripts"))
import report_svg  # noqa: E402

PLANTED = ('<h1 id="here"></h1><a href="#here"></a><a href="gone.html"></a><a href="page.html#gone"></a>'
           '<img src="https://example.org/a.png"><script src="//example.org/a.js"></script>')
OWN_BUSINESS = re.compile(r"https?://([a-z0-9-]+\.)*(google|googleapis|gstatic|gvt1)\.com/")  # Chromium's, whatever page is open
# Page and query, and what must be in the document that Chromium made of it.
OPENED = (("index.html", "From your own sacct"), ("docs/guide/concepts.html", "<mfrac>"), ("docs/policies.html", "<math"),
          ("search.html?q=gavel", 'href="docs/policies.html'))


class Page(html.parser.HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("link", "script", "img", "iframe", "source"):
            self.loaded += [values[name] for name in ("href", "src") if values.get(name)]


def link_problems(site):
    """Links that lead nowhere, and what is loaded from elsewhere. Doxygen's pages are looked at as targets only."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    for file, page in sorted(pages.items()):
        if file.relative_to(site).parts[0] == "api":
            continue
        for link in dict.fromkeys(page.links + page.loaded):
            if re.match(r"[a-z]+:|//", link):
                if link in page.loaded and not link.startswith("data:"):
                    yield f"{file.relative_to(site)} loads {link}"
                continue
            path, _, anchor = link.partition("#")
            path, anchor = urllib.parse.unquote(path.partition("?")[0]), urllib.parse.unquote(anchor)
            target = (file.parent / path).resolve() if path else file
            if not target.exists():
                yield f"{file.relative_to(site)}: the link {link} leads nowhere"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{file.relative_to(site)}: the link {link} names no place of that page"


def browser_problems(site, scratch):
    for place, expected in OPENED:
        log = scratch / "requests.json"
        document, said = report_svg.open_page(f"{site.as_uri()}/{place}", f"--log-net-log={log}", "--virtual-time-budget=5000")
        yield from (f"{place}: console: {line}" for line in said.splitlines() if "CONSOLE" in line)
        for address in re.findall(r'"url":"([^"]*)"', log.read_text(encoding="utf-8", errors="replace")):
            if re.match(r"(https?|wss?|ftp):", address) and not OWN_BUSINESS.match(address):
                yield f"{place} asks for {address}"
        if expected not in document:
            yield f"{place} does not hold {expected}"


def main():
    if sys.argv[4] != "1":
        print("skipped: the site needs Sphinx (python3-sphinx, python3-myst-parser, furo)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (scratch / "page.html").write_text(PLANTED)
        planted = list(link_problems(scratch))
        if len(planted) != 4:
            print("\n".join(planted), f"\n4 errors are planted, {len(planted)} were found")
            return 1
        made = subprocess.run([sys.argv[3], "--build", BUILD, "--target", "site"], capture_output=True, text=True, check=False)
        if made.returncode:
            print(made.stdout + made.stderr)
            return 1
        problems = list(link_problems(BUILD / "site"))
        if report_svg.find_chromium():
            problems += browser_problems(BUILD / "site", scratch)
        else:
            print("Chromium is not there: pages are not opened")
    print("\n".join(problems) or "every link of the site holds, and its pages open without a request")
    return bool(problems)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main())
