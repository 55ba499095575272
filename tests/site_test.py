#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the site of the documentation and looks at it.

    tests/site_test.py debian|pip SOURCE_DIR BUILD_DIR CMAKE FOUND

`debian` makes it as the target `site` does, by the Sphinx that CMake found; `pip` by that of tests/site_requirements.txt, which it
installs in SOURCE_DIR/build/sphinx. Sphinx says nothing; every link of every page leads to a file and an anchor that are there;
nothing is taken from another site. In headless Chromium, where that is installed: no request and no message on the console, the search
finds, on a window of 1,280 pixels every table, formula and block of code is seen whole, and on one of 390 no page is wider.
Exit code 77 (skipped) with a line that says why where Sphinx is missing (FOUND is 0; pip finds none). Before that, planted errors
must be found.
"""
import html
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse
import venv

ROOT, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[2:4])
sys.path.insert(0, str(ROOT / "scripts"))
import report_svg  # noqa: E402

PLANTED = ('<h1 id="here"></h1><a href="#here"></a><p>–option</p><a href="gone.html"></a><a href="page.html#gone"></a>'
           '<img src="https://example.org/a.png"><script src="//example.org/a.js"></script>')
OWN_BUSINESS = re.compile(r"https?://([a-z0-9-]+\.)*(google|googleapis|gstatic|gvt1)\.com/")  # Chromium's, whatever page is open
# Page and query, and what must be in the document that Chromium made of it.
OPENED = (("index.html", "From your own sacct"), ("docs/guide/concepts.html", "<mfrac>"), ("docs/policies.html", "<math"),
          ("search.html?q=gavel", 'href="docs/policies.html'))

WHOLE = ".content table, .content pre, .content div.math"  # what a desktop shows whole
# A table, a block of code and a formula too wide for 1,280 pixels, a formula of no size.
PLANTED_BOXES = """<!DOCTYPE html><style>table, pre, div { display: block; width: 900px; overflow: auto }</style><div class="content">
<table><tr><td><p style="width: 2000px">table</p></table><pre><p style="width: 2000px">code</p></pre>
<div class="math"><p style="width: 2000px">formula</p></div><p><math></math></p></div>"""
# Opens every page in a frame and writes a line for each problem.
LOOKER = """<!DOCTYPE html><meta charset="utf-8"><pre id="said"></pre><script>
const text = box => box.textContent.trim().replace(/\\s+/g, " ").slice(0, 60);
function problems(page) {
  const found = [], wide = page.documentElement.scrollWidth;
  if (wide > WIDTH) found.push(`the page is ${wide} px wide`);
  for (const box of page.querySelectorAll(SELECTOR))
    if (box.scrollWidth > box.clientWidth + 1)
      found.push(`${box.tagName.toLowerCase()} cropped, ${box.clientWidth} of ${box.scrollWidth} px: ${text(box)}`);
  for (const formula of page.querySelectorAll("math, div.math")) {
    const size = formula.getBoundingClientRect();
    if (size.width < 3 || size.height < 3) found.push(`blank formula: ${text(formula.parentElement)}`);
  }
  return found;
}
async function look(pages) {
  const said = [];
  for (const page of pages) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "border: 0; height: 900px; width: WIDTHpx";
    const loaded = new Promise(done => { frame.onload = done; });
    frame.src = page;
    document.body.append(frame);
    await loaded;
    said.push(...problems(frame.contentDocument).map(line => `${page}: ${line}`));
    frame.remove();
  }
  return [...said, `looked at ${pages.length} pages`];
}
const say = lines => { document.getElementById("said").textContent = lines; };
look(PAGES).then(lines => say(lines.join("\\n")), say);
</script>"""


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


def page_problems(site):
    """Links that lead nowhere, what is loaded from elsewhere, and dashes that are none. Doxygen's pages are looked at as targets only."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    for file, page in sorted(pages.items()):
        if file.relative_to(site).parts[0] == "api":
            continue
        for option in re.findall(r"[\s(>]–[a-z][\w-]*", file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)}: the dashes of {option.strip()} have become one"
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


def narrow_problems(site, scratch, width, selector):
    """What is wider than a window of `width` pixels, or than the box that shows it, of the elements `selector`; and blank formulas."""
    pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html") if page.relative_to(site).parts[0] != "api")
    looker = scratch / "looker.html"
    looker.write_text(LOOKER.replace("PAGES", json.dumps([f"{site.as_uri()}/{page}" for page in pages]))
                      .replace("WIDTH", str(width)).replace("SELECTOR", json.dumps(selector)))
    document, _ = report_svg.open_page(looker.as_uri(), "--allow-file-access-from-files", "--virtual-time-budget=60000",
                                       f"--window-size={width + 100},1000")
    *found, last = html.unescape(re.search(r'<pre id="said">(.*?)</pre>', document, re.DOTALL).group(1)).split("\n")
    yield from (f"{width} px: {line.removeprefix(site.as_uri() + '/')}" for line in found)
    if last != f"looked at {len(pages)} pages":
        yield f"{width} px: the pages were not looked at: {last}"


def planted_problems(scratch):
    """What is found in pages of planted errors: pairs of how many there are and the lines about them."""
    links = scratch / "links"
    links.mkdir()
    (links / "page.html").write_text(PLANTED)
    yield 5, list(page_problems(links))
    if report_svg.find_chromium():
        boxes = scratch / "boxes"
        boxes.mkdir()
        (boxes / "page.html").write_text(PLANTED_BOXES)
        yield 4, list(narrow_problems(boxes, scratch, 1280, WHOLE))
        yield 2, list(narrow_problems(boxes, scratch, 390, "no-such-element"))


def pip_sphinx():
    """The program sphinx-build of tests/site_requirements.txt, or None where pip does not find it."""
    needed, folder = ROOT / "tests/site_requirements.txt", ROOT / "build/sphinx"
    ready = folder / "ready"  # a copy of the list, so that another list is installed anew
    if not ready.exists() or ready.read_text() != needed.read_text():
        venv.create(folder, clear=True, with_pip=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "60", "-r", needed]
        if subprocess.run(pip, stdin=subprocess.DEVNULL, check=False).returncode:
            return None
        ready.write_text(needed.read_text())
    return folder / "bin/sphinx-build"


def make_site(way, cmake, is_found):
    """(the site's folder, what its making said, None), or (None, what it said, the exit code of this test)."""
    if way == "debian":
        if not is_found:
            return None, "skipped: the site needs Sphinx (python3-sphinx, python3-myst-parser, furo)", 77
        site, command = BUILD / "site", [cmake, "--build", BUILD, "--target", "site"]
    else:
        sphinx = pip_sphinx()
        if sphinx is None:
            return None, "skipped: pip finds no Sphinx (tests/site_requirements.txt)", 77
        # The target's reference of the headers: without Doxygen there is none, and the links to it are problems.
        subprocess.run([cmake, "--build", BUILD, "--target", "docs"], capture_output=True, check=False)
        site = BUILD / "site_pip"
        command = [sys.executable, ROOT / "docs/site/make_site.py", sphinx, ROOT, BUILD / "docs/site_pip", site, BUILD / "docs/html"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    said = made.stdout + made.stderr
    is_right = made.returncode == 0 and "WARNING" not in said
    return (site, said, None) if is_right else (None, said, 1)


def main(way, cmake, found):
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for planted, lines in planted_problems(scratch):
            if len(lines) != planted:
                print("\n".join(lines), f"\n{planted} errors are planted, {len(lines)} were found")
                return 1
        site, said, status = make_site(way, cmake, found == "1")
        if site is None:
            print(said)
            return status
        problems = list(page_problems(site))
        if report_svg.find_chromium():
            problems += browser_problems(site, scratch)
            problems += narrow_problems(site, scratch, 1280, WHOLE)
            problems += narrow_problems(site, scratch, 390, "no-such-element")
        else:
            print("Chromium is not there: pages are not opened")
    print("\n".join(problems) or "every link of the site holds, its pages open without a request, and nothing is cropped")
    return bool(problems)


if __name__ == "__main__":
    if len(sys.argv) != 6 or sys.argv[1] not in ("debian", "pip"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *sys.argv[4:]))
