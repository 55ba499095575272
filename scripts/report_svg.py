#!/usr/bin/env python3
"""Saves figures of a page that `gpusched report` wrote as SVG files, by Chromium without a window.

    scripts/report_svg.py PAGE FOLDER [--width PIXELS] [FIGURE...]

Writes FOLDER/FIGURE.svg, of all figures where none is named: the same pictures as the page's buttons "SVG" give. They follow a
light or dark theme. The default width is 720.
"""
import argparse
import html.parser
import pathlib
import shutil
import subprocess
import sys
import tempfile


def find_chromium():
    """The path of a browser that can be asked, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def run_chromium(address, *options):
    """Opens a page as the options say; what Chromium writes on standard output and standard error."""
    with tempfile.TemporaryDirectory() as profile:
        asked = subprocess.run(
            [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
             "--disable-component-update", "--no-first-run", f"--user-data-dir={profile}", "--enable-logging=stderr",
             *options, address], capture_output=True, text=True, timeout=120, check=True)
    return asked.stdout, asked.stderr


def open_page(address, *options):
    """What Chromium makes of a page: its document after the scripts ran, and what it wrote on standard error."""
    return run_chromium(address, "--dump-dom", *options)


class Pictures(html.parser.HTMLParser):
    """The texts of the elements <pre data-picture=NAME>."""

    def __init__(self):
        super().__init__()
        self.found, self.name = {}, None

    def handle_starttag(self, tag, attributes):
        if tag == "pre":
            self.name = dict(attributes).get("data-picture")

    def handle_endtag(self, tag):
        self.name = None if tag == "pre" else self.name

    def handle_data(self, data):
        if self.name:
            self.found[self.name] = self.found.get(self.name, "") + data


def pictures_of(page, width):
    """{figure: SVG text} of the page's file."""
    document, _ = open_page(f"{page.resolve().as_uri()}#svg={width}", "--virtual-time-budget=20000")
    reader = Pictures()
    reader.feed(document)
    return reader.found


def main():
    reader = argparse.ArgumentParser(usage=__doc__)
    reader.add_argument("page", type=pathlib.Path)
    reader.add_argument("folder", type=pathlib.Path)
    reader.add_argument("figures", nargs="*")
    reader.add_argument("--width", type=int, default=720)
    arguments = reader.parse_intermixed_args()
    if find_chromium() is None:
        sys.exit("Chromium is not here; the page's buttons SVG save the same pictures from any browser")
    pictures = pictures_of(arguments.page, arguments.width)
    unknown = [name for name in arguments.figures if name not in pictures]
    if unknown or not pictures:
        sys.exit(f"{arguments.page}: no figure {', '.join(unknown)}; it has {', '.join(pictures) or 'none'}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.figures or pictures:
        (arguments.folder / f"{name}.svg").write_text(pictures[name] + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
