#!/usr/bin/env python3
"""Opens pages of `gpusched report` in headless Chromium: nothing on the console, no request, every chart there and, read back
from the page, right; names with markup stay text; keys zoom; light, dark and print; a run of 100,000 jobs within 3 seconds.

    tests/report/page_test.py SOURCE_DIR PROGRAM

Exit code 77 (skipped) with a line that says why where Chromium or Vega is missing.
"""
import csv
import html.parser
import io
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

ROOT, PROGRAM = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve())
sys.path.insert(0, str(ROOT / "scripts"))
import report_svg  # noqa: E402

MARKUP = "</script><img src=x onerror=console.error(1)>"
problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def near(a, b, tolerance=0.6):
    return abs(a - b) <= tolerance


def gpusched(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"gpusched {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


class Element:
    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children, self.text = tag, dict(attributes), [], ""

    def all(self, tag=None, **attributes):
        """This element and those in it that have the tag and, among their classes or values, these attributes."""
        if tag in (None, self.tag) and all(
                value in self.attributes.get(name.rstrip("_"), "").split() for name, value in attributes.items()):
            yield self
        for child in self.children:
            yield from child.all(tag, **attributes)

    def words(self):
        return self.text + "".join(child.words() for child in self.children)


class Reader(html.parser.HTMLParser):
    """A tree of what Chromium made of the page."""
    EMPTY = {"meta", "link", "img", "br", "input", "path", "line", "rect"}

    def __init__(self, document):
        super().__init__()
        self.path = [Element("document", ())]
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        element = Element(tag, attributes)
        self.path[-1].children.append(element)
        if tag not in {"meta", "link", "img", "br", "input"}:
            self.path.append(element)

    def handle_startendtag(self, tag, attributes):
        self.path[-1].children.append(Element(tag, attributes))

    def handle_endtag(self, tag):
        while len(self.path) > 1 and self.path.pop().tag != tag:
            pass

    def handle_data(self, data):
        self.path[-1].text += data


def opened(page, script="", *options):
    """The document of a page, after more script at its end; console messages and requests are problems."""
    if script:
        text = page.read_text(encoding="utf-8").replace("</body>", f"<script>{script}</script></body>")
        page = page.with_name("scripted.html")
        page.write_text(text, encoding="utf-8")
    log = page.with_name("requests.json")
    document, said = report_svg.open_page(page.resolve().as_uri(), f"--log-net-log={log}", "--window-size=1000,800", *options)
    for line in said.splitlines():
        expect("CONSOLE" not in line, f"{page.name}: console: {line}")
    for address in re.findall(r'"url":"([^"]*)"', log.read_text(encoding="utf-8", errors="replace")):
        expect(not re.match(r"(https?|wss?|ftp):", address) or is_own_business(address), f"{page.name}: asks for {address}")
    root = Reader(document).path[0]
    page_element = next(root.all("html"))
    expect(page_element.attributes.get("data-failed") == "0", f"{page.name}: not every chart was drawn")
    return root, page_element.attributes


def is_own_business(address):
    """What Chromium asks of its maker, whatever page is open."""
    return re.match(r"https?://([a-z0-9-]+\.)*(google|googleapis|gstatic|gvt1)\.com/", address)


def chart(root, name):
    return next(element for element in root.all("figure") if element.attributes.get("id") == f"figure-{name}")


def marks(figure, kind):
    """The elements that Vega drew for marks of a kind: 'line', 'rect', 'symbol'."""
    return [path for group in figure.all("g", class_=f"mark-{kind}") if "role-mark" in group.attributes["class"]
            for path in group.all("path")]


def legend_of(figure):
    """The names in the legend of a figure."""
    return [text.words() for group in figure.all("g", class_="role-legend-label") for text in group.all("text")]


def size(figure):
    """Width and height of the plot: the background of the root group."""
    root = next(figure.all("g", class_="root"))
    d = next(path for path in root.all("path") if path.attributes.get("class") == "background").attributes["d"]
    return [float(number) for number in re.match(r"M0,0h([\d.]+)v([\d.]+)", d).groups()]


def corners(path):
    return [tuple(map(float, pair.split(","))) for pair in re.split("[ML]", path.attributes["d"])[1:]]


def data_of(root):
    return json.loads(next(element for element in root.all("script") if element.attributes.get("id") == "data").words())


def check_hand_made(folder):
    """Three jobs, whose figures are known: see report_test.cpp."""
    trace = folder / "hand.csv"
    trace.write_text("job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,user\n"
                     f"a,0,10,2,1000,{MARKUP},u\nb,2,4,2,1000,y,{MARKUP}\n{MARKUP},20,20,1,1000,y,u\n")
    run, page = folder / "run & <b>", folder / "page.html"
    gpusched("replay", trace, "--cluster", "1x2", "--policy", "fifo,srtf", "--out", run)
    gpusched("report", run, "--out", page)
    root, _ = opened(page)
    data = data_of(root)
    names = [figure["id"] for figure in data["figures"]]
    expect(names == ["difference", "jct", "wait", "utilization", "queue", "size", "vc", "user",
                     "front-worst_decile_slowdown", "front-max_finish_time_ratio", "nodes"], f"figures: {names}")
    for name in names:
        expect(any(chart(root, name).all("svg")), f"{name}: not drawn")
    expect(not any(root.all("img")) and not any(root.all("b")), "a name became markup")
    expect(MARKUP[:16] in chart(root, "vc").words(), "the name of a virtual cluster is not shown")

    # Completion times of fifo: 10, 12, 20 s; of srtf: 4, 14, 20 s, on a logarithmic axis from 4 to 20.
    width, height = size(chart(root, "jct"))
    lines = marks(chart(root, "jct"), "line")
    expect(len(lines) == 2, f"jct: {len(lines)} lines")
    legend = legend_of(chart(root, "jct"))
    expect(legend == ["fifo", "srtf*"], f"jct: the legend is {legend}; a star marks what knows true run times")
    for line, times in zip(lines, ((10, 12, 20), (4, 14, 20))):
        drawn = corners(line)
        for place, seconds in enumerate(times):
            x, y = width * math.log(seconds / 4) / math.log(5), height * (1 - (place + 1) / 3)
            expect(any(near(x, at[0]) and near(y, at[1]) for at in drawn), f"jct: no corner at {seconds} s: {drawn}")

    # Boxes of fifo on the one node of 2 GPUs: a until 10, b until 14, the third from 20 to 40 on one GPU.
    width, height = size(chart(root, "nodes"))
    boxes = [[float(n) for n in re.match(r"M([-\d.]+),([-\d.]+)h([\d.]+)v([\d.]+)", box.attributes["d"]).groups()]
             for box in marks(chart(root, "nodes"), "rect")]
    expect([(round(x / width * 40, 1), round(w / width * 40, 1)) for x, _, w, _ in boxes] == [(0, 10), (10, 4), (20, 20)],
           f"nodes: {boxes} of {width}")
    expect(len(boxes) == 3 and near(boxes[2][3] * 2, boxes[0][3]), f"nodes: one GPU is half of a node: {boxes}")

    # GPUs in use: all until 14, none until 20, half until 40.
    width, height = size(chart(root, "utilization"))
    line = corners(marks(chart(root, "utilization"), "line")[0])
    for seconds, share in ((7, 1), (17, 0), (30, 0.5)):
        at = [y for x, y in line if x <= seconds / 40 * width][-1]
        expect(near(at, height * (1 - share)), f"utilization at {seconds} s: {1 - at / height}")
    return page


def check_keys(page):
    """The keys + and 0 on a figure, a run's checkbox, and the data that a button saves."""
    _, found = opened(page, """addEventListener("load", async () => {
      const kept = document.documentElement.dataset;
      const drawn = () => new Promise(done => setTimeout(done, 50));
      const labels = () =>
        [...document.querySelectorAll("#figure-utilization .role-axis-label text")].map(e => e.textContent).sort().join();
      const press = async key => {
        document.getElementById("figure-utilization").dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        await drawn();
        return labels();
      };
      kept.whole = labels();
      kept.zoomed = await press("+");
      kept.again = await press("0");
      kept.reached = [...document.querySelectorAll("figure")].every(e => e.tabIndex === 0);
      document.querySelector("#runs input").click();
      const choice = document.querySelector("#figure-nodes select");
      choice.value = "srtf";
      choice.dispatchEvent(new Event("change"));
      await drawn();
      kept.lines = document.querySelectorAll("#figure-jct .mark-line.role-mark path").length;
      kept.boxes = document.querySelectorAll("#figure-nodes .mark-rect.role-mark path").length;
    });""", "--virtual-time-budget=5000")
    expect(found["data-whole"] != found["data-zoomed"] and found["data-whole"] == found["data-again"], f"keys: {found}")
    expect(found["data-reached"] == "true", "a figure cannot be reached by the keyboard")
    expect(found["data-lines"] == "1", f"a run that is not chosen is drawn: {found['data-lines']} lines")
    expect(found["data-boxes"] == "4", f"srtf has four boxes, {found['data-boxes']} are drawn")


def check_planted(page):
    """A message and a request, planted in a page, are found: the test of this test."""
    del problems[:]
    opened(page, "console.error('planted'); fetch('https://example.org/planted').catch(() => {});")
    expect(any("planted" in problem and "console" in problem for problem in problems), "a planted message was not found")
    # The page's policy stops the request, which the console tells.
    expect(any("example.org" in problem for problem in problems), "a planted request was not found")
    problems[:] = [problem for problem in problems if "not found" in problem]


def first_pixel(picture):
    """Red, green, blue of a PNG's first pixel."""
    packed, at = b"", 8
    while at < len(picture):
        length, kind = struct.unpack(">I4s", picture[at:at + 8])
        packed += picture[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return tuple(zlib.decompressobj().decompress(packed, 4)[1:4])


def check_light_dark_print(page):
    def shot(name, how, *options):
        file = page.with_name(name)
        report_svg.run_chromium(page.resolve().as_uri(), f"--{how}={file}", "--window-size=800,600", *options)
        return file.read_bytes()

    picture = shot("light.png", "screenshot")
    expect(first_pixel(picture) == (255, 255, 255), f"light: {first_pixel(picture)}")
    picture = shot("dark.png", "screenshot", "--blink-settings=preferredColorScheme=0")
    expect(first_pixel(picture) == (13, 17, 23), f"dark: {first_pixel(picture)}")
    printed = shot("page.pdf", "print-to-pdf")
    expect(printed.startswith(b"%PDF") and len(printed) > 20000, f"print: {len(printed)} bytes")


def check_pictures(page):
    """The exported pictures are whole XML, need nothing from elsewhere, and hold what the page draws."""
    pictures = report_svg.pictures_of(page, 640)
    expect(len(pictures) == 11, f"{len(pictures)} pictures: {list(pictures)}")
    for name, text in pictures.items():
        try:
            picture = xml.etree.ElementTree.fromstring(text)
        except xml.etree.ElementTree.ParseError as error:
            expect(False, f"{name}.svg: {error}")
            continue
        expect(picture.get("width") == "640", f"{name}.svg: width {picture.get('width')}")
        expect("href=" not in text and "url(http" not in text, f"{name}.svg: needs another file")


def check_csv(folder, page):
    """The page holds the data that --csv writes, and an equal page comes from the same files."""
    again, data = folder / "again.html", folder / "data"
    gpusched("report", folder / "run & <b>", "--out", again, "--csv", data)
    expect(again.read_bytes() == page.read_bytes(), "the same input gave other bytes")
    root, _ = opened(again)
    for figure in data_of(root)["figures"]:
        text = (data / f"{figure['id']}.csv").read_text(encoding="utf-8")
        expect(text == figure["csv"], f"{figure['id']}.csv: not the data of the page")
        widths = {len(row) for row in csv.reader(io.StringIO(text))}
        expect(len(widths) == 1, f"{figure['id']}.csv: rows of {widths} fields")


def check_other_folders(folder):
    """Two loads, an evaluation and two training seeds on one page."""
    for nodes in (8, 12):
        gpusched("replay", "synthetic:philly:500", "--cluster", f"{nodes}x8", "--policy", "fifo,sjf", "--out",
                 folder / f"load{nodes}")
    gpusched("evaluate", "synthetic:philly:2000", "--cluster", "4x8", "--oversize", "drop", "--policy", "fifo,sjf",
             "--window-jobs", "20", "--out", folder / "windows")
    for seed, ratios in ((1, "0.9"), (2, "0.5")):
        seeds = folder / "seeds" / f"seed-{seed}"
        seeds.mkdir(parents=True)
        (seeds / "metrics.csv").write_text("generation,loss,heuristic_loss,validation_loss,validation_heuristic_loss\n"
                                           f"1,1,1,1,1\n2,1,1,{ratios},1\n")
    (folder / "seeds" / "seeds.json").write_text("{}")
    page = folder / "others.html"
    gpusched("report", *(folder / name for name in ("load8", "load12", "windows", "seeds")), "--out", page)
    root, _ = opened(page)
    for name in ("load", "windows", "learning", "difference", "nodes"):
        expect(any(chart(root, name).all("svg")), f"{name}: not drawn")
    # Validation falls from the heuristic's loss to 0.9 and 0.5 of it: the lowest point ends at the bottom of the range.
    drawn = [corners(line) for line in marks(chart(root, "learning"), "line")]
    expect(len(drawn) == 4, f"learning: {len(drawn)} lines")
    falls = sorted(round(line[-1][1] - line[0][1], 1) for line in drawn)
    expect(falls[:2] == [0, 0] and near(falls[3], 5 * falls[2]) and falls[2] > 10, f"learning: falls {falls}")
    lines = [corners(line) for line in marks(chart(root, "load"), "line")]
    expect(len(lines) == 2 and all(len(line) == 2 for line in lines), f"load: {lines}")
    expect(lines[0][1][0] > lines[0][0][0] and lines[0][1][1] < lines[0][0][1], f"load: more load, longer times: {lines[0]}")


def check_sweep(folder):
    """A sweep: curves over two keys with intervals over seeds, and a name with markup."""
    grid = {"policy": ["fifo", "sjf", "las"], "load": [0.8, 1, 1.2], "seed": {"from": 1, "to": 6}}
    file, out, page = folder / "sweep.json", folder / "sweep <i>", folder / "sweep.html"
    file.write_text(json.dumps({"base": {"trace": "synthetic:philly:300", "cluster": "6x8", "oversize": "drop"}, "grid": grid}))
    gpusched("sweep", file, "--out", out)
    gpusched("report", out, "--out", page)
    root, _ = opened(page)
    names = [figure["id"] for figure in data_of(root)["figures"]]
    expect(names == ["sweep-difference", "sweep-load", "sweep-front"], f"sweep: figures {names}")
    expect(not any(root.all("i")), "the name of a sweep became markup")
    legend = legend_of(chart(root, "sweep-load"))
    expect(legend == ["fifo", "sjf*", "las"], f"sweep-load: the legend is {legend}")
    lines = [corners(line) for line in marks(chart(root, "sweep-load"), "line")]
    expect(len(lines) == 3 and all(len(line) == 3 for line in lines), f"sweep-load: {lines}")
    rules = [rule for group in chart(root, "sweep-load").all("g", class_="mark-rule") if "role-mark" in group.attributes["class"]
             for rule in group.all("line")]
    expect(len(rules) == 9, f"sweep-load: {len(rules)} intervals")
    rows = list(csv.DictReader(io.StringIO((out / "comparison.csv").read_text())))
    expect(len(rows) == 2 * 3 * 3 and all(row["unit"] == "seed" and row["pairs"] == "6" for row in rows), f"comparison: {rows[:2]}")
    pictures = report_svg.pictures_of(page, 640)
    expect(sorted(pictures) == sorted(names), f"sweep: pictures {list(pictures)}")


def check_search(folder):
    """A search made by hand: points on logarithmic axes, on a linear one where a value is 0, and the line of the front."""
    out, page = folder / "search <i>", folder / "search.html"
    out.mkdir()
    (out / "manifest.json").write_text(json.dumps(
        {"config": {"objectives": ["avg_jct_s", "p99_wait_s", "avg_bounded_slowdown"]}, "windows": {},
         "hypervolume": {"train": {"compared": 0.1}}}))
    (out / "front.csv").write_text(
        "kind,policy,candidate,clairvoyant,held_out_avg_jct_s,held_out_p99_wait_s,held_out_avg_bounded_slowdown,on_front,"
        "dominated_by,message\n"
        f"found,{MARKUP},{MARKUP},false,100,0,8,true,,\nfound,b,b,false,400,0,4,false,,\n"
        "compared,fifo+easy,fifo+easy,false,200,60,2,true,,\ncompared,srtf,srtf,true,100,30,16,false,,\n")
    (out / "generations.csv").write_text("generation,candidates,failed,front,hypervolume,population_hypervolume\n"
                                         "0,8,0,2,0.1,0.1\n1,12,0,3,0.3,0.2\n2,16,0,3,0.5,0.5\n")
    gpusched("report", out, "--out", page)
    root, _ = opened(page)
    names = [figure["id"] for figure in data_of(root)["figures"]]
    expect(names == ["search-front-p99_wait_s", "search-front-avg_bounded_slowdown", "search-hypervolume"], f"search: {names}")
    expect(not any(root.all("i")) and not any(root.all("img")), "a name of a search became markup")

    def points(name):
        places = [re.match(r"translate\(([-\d.]+),([-\d.]+)\)", mark.attributes["transform"]).groups()
                  for mark in marks(chart(root, name), "symbol")]
        return [(float(x), float(y)) for x, y in places]

    # By completion time: 100, 100, 200, 400 s, a factor of two as wide as the next; the policy compared is in between.
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = points("search-front-avg_bounded_slowdown")
    expect(near(x0, x1) and near(x2 - x1, x3 - x2) and x3 > x2 > x1, f"search: x {x0, x1, x2, x3}")
    expect(near(y1 - y0, -(y3 - y0)) or near(y0 - y1, y3 - y0), f"search: slowdowns 8, 16, 2, 4: {y0, y1, y2, y3}")
    expect(near(y2 - y3, y0 - y1), f"search: factors of two: {y0, y1, y2, y3}")
    line = corners(marks(chart(root, "search-front-avg_bounded_slowdown"), "line")[0])
    expect(len(line) == 2 and near(line[0][1], y0) and near(line[1][1], y2), f"search: front {line}")
    # Waits of 0, 30, 60 and 0 s: a linear axis.
    (_, y0), (_, y1), (_, y2), (_, y3) = points("search-front-p99_wait_s")
    expect(near(y0, y3) and near(y0 - y1, y1 - y2) and y1 < y0, f"search: waits {y0, y1, y2, y3}")
    said = chart(root, "search-front-p99_wait_s").words()
    expect("fifo" in said and "fifo+easy" not in said and "srtf" in said, f"search: labels {said}")
    lines = [corners(line) for line in marks(chart(root, "search-hypervolume"), "line")]
    expect(len(lines) == 3 and all(len(line) == 3 for line in lines), f"hypervolume: {lines}")
    rise = [lines[0][0][1] - y for _, y in lines[0]]
    expect(near(rise[2], 2 * rise[1]) and near(lines[2][0][1], lines[2][2][1]), f"hypervolume: {lines}")


def check_large(folder):
    gpusched("replay", "synthetic:philly:100000", "--cluster", "40x8", "--policy", "sjf,las", "--out", folder / "large")
    gpusched("report", folder / "large", "--out", folder / "large.html")
    # The least of some openings: what else the machine does is not the page's time.
    drawn_ms = math.inf
    for _ in range(5):
        drawn_ms = min(drawn_ms, int(opened(folder / "large.html")[1]["data-drawn-ms"]))
        if drawn_ms < 3000:
            break
    expect(drawn_ms < 3000, f"100,000 jobs: drawn after {drawn_ms} ms")
    size_kib = (folder / "large.html").stat().st_size // 1024
    print(f"100,000 jobs: a page of {size_kib} KiB, drawn after {drawn_ms} ms")


def main():
    if report_svg.find_chromium() is None:
        print("skipped: Chromium is not here")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        asked = subprocess.run([PROGRAM, "report", name], capture_output=True, text=True)
        if "without Vega" in asked.stderr:
            print("skipped: gpusched was built without Vega")
            return 77
        gpusched("replay", "synthetic:philly:100", "--policy", "fifo", "--out", folder / "planted")
        gpusched("report", folder / "planted", "--out", folder / "planted.html")
        check_planted(folder / "planted.html")
        page = check_hand_made(folder)
        check_keys(page)
        check_light_dark_print(page)
        check_pictures(page)
        check_csv(folder, page)
        check_other_folders(folder)
        check_sweep(folder)
        check_search(folder)
        check_large(folder)
    print("\n".join(problems) if problems else "the pages show what their data says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
