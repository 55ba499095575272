#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/configuration.md, a table of every key of every configuration file, from their JSON Schemas.

    scripts/configuration_page.py [--check]

With --check nothing is written: exit code 1 if the page is not what the schemas say, or if the keys that src/rl/train_config.cpp and
src/policies/learned/network_config.hpp read, which have no schema, are not those of the table in docs/train.md.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/configuration.md"
HEAD = """# Every configuration key

One table for each kind of file, made from its JSON Schema by `scripts/configuration_page.py`; a test compares. Files are strict JSON: an unknown
key is an error that names the nearest known one. `a.b` is the key `b` of the object `a`; `a[]` is an entry of the array `a`; `*` is any
name. Keys without a default are left out, or needed where it says so.

Without a schema: the keys of `gpusched train` ([train.md](train.md#the-configuration)), and of `--communication` files
([replay.md](replay.md#gangs-that-are-apart)).
"""
FILES = (  # schema, title, what takes it, keys whose own keys another section has
    ("docs/scenario.schema.json", "Replay", "`gpusched replay --config FILE` ([replay.md](replay.md)); `--set KEY=VALUE` sets one key.", ()),
    ("docs/evaluate.schema.json", "Evaluate", "`gpusched evaluate --config FILE` ([evaluate.md](evaluate.md)).", ()),
    ("docs/sweep.schema.json", "Sweep", "`gpusched sweep FILE` ([sweep.md](sweep.md)). `grid` and `list` take the keys of `base`.", ("grid", "list")),
    ("docs/search.schema.json", "Search", "`gpusched search FILE` ([search.md](search.md)). `base` takes the keys of a [sweep](#sweep)'s `base`.", ()),
    ("docs/cluster.schema.json", "Cluster", "`--cluster FILE` ([traces.md](traces.md#clusters)).", ()),
    ("src/calibration/profile/device_profile.schema.json", "Device profile",
     "`--profile FILE`, as `gpusched calibrate` writes it ([calibration.md](calibration.md)).", ()),
)


def resolve(schema, node):
    """`node` with its references followed; what stands beside a reference counts."""
    while "$ref" in node:
        target = schema
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def kind(schema, node):
    """What a value may be, in words."""
    if node.get("$ref", "").endswith("/quantity"):
        return "[quantity](#quantity)"
    node = resolve(schema, node)
    if "enum" in node:
        return " \\| ".join(f"`{value}`" for value in node["enum"])
    for several in ("anyOf", "oneOf"):
        if several in node:
            return " or ".join(dict.fromkeys(kind(schema, one) for one in node[several]))
    if "const" in node:
        return f"`{node['const']}`"
    words = node.get("type", "any")
    words = " or ".join(words) if isinstance(words, list) else words
    if words == "array" and "items" in node and not isinstance(node["items"], list):
        inner = resolve(schema, node["items"])
        return "array of " + ("objects" if "properties" in inner else kind(schema, inner))
    bounds = []
    for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<")):
        if key in node and not (key == "maximum" and node[key] >= 1e6):
            bounds.append(f"{sign} {node[key]}")
    return words + (" " + ", ".join(bounds) if bounds else "")


def rows(schema, node, path, elsewhere):
    """(key, kind, default, meaning) of every key below `node`."""
    node = resolve(schema, node)
    needed = node.get("required", [])
    for name, child in node.get("properties", {}).items():
        if name == "$schema":
            continue
        key, words, child = (f"{path}.{name}" if path else name), kind(schema, child), resolve(schema, child)
        default = f"`{json.dumps(child['default'])}`" if "default" in child else "needed" if name in needed else ""
        yield key, words, default, child.get("description", "")
        if name not in elsewhere and "quantity" not in words:
            yield from below(schema, child, key, elsewhere)


def below(schema, node, path, elsewhere):
    """The keys of an object, of the objects of an array, or of one of several forms."""
    node = resolve(schema, node)
    yield from rows(schema, node, path, elsewhere)
    if isinstance(node.get("items"), dict):
        yield from below(schema, node["items"], path + "[]", elsewhere)
    values = node.get("additionalProperties")
    if isinstance(values, dict) and "quantity" in kind(schema, values):
        yield path + ".*", kind(schema, values), "", ""
    elif isinstance(values, dict):
        yield from below(schema, values, path + ".*", elsewhere)
    for several in ("anyOf", "oneOf"):
        for one in node.get(several, []):
            yield from below(schema, one, path, elsewhere)


def cell(text):
    """Text of a table's cell: bars are escaped, and what Markdown would take for a tag stands as text."""
    return re.sub(r"(?<!\\)\|", r"\\|", text).replace("<", "&lt;").replace("*", "\\*")


def table(found):
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, words, default, meaning in dict.fromkeys(found):
        lines.append(re.sub(r"\|  (?=\|)", "| ", f"| `{key}` | {words} | {default} | {cell(meaning)} |"))
    return "\n".join(lines) + "\n"


def page():
    parts = [HEAD]
    for file, title, taken, elsewhere in FILES:
        schema = json.loads((ROOT / file).read_text())
        parts.append(f"\n## {title}\n\n{taken} The schema: `{file}`.\n\n" + table(rows(schema, schema, "", elsewhere)))
        if "quantity" in schema.get("definitions", {}):
            parts.append("\n### Quantity\n\nA figure of a device profile.\n\n" + table(rows(schema, schema["definitions"]["quantity"], "", ())))
    return "".join(parts)


def train_keys():
    """Problems: keys that the trainer reads and docs/train.md does not name, or the other way round."""
    code = "".join((ROOT / file).read_text() for file in ("src/rl/train_config.cpp", "src/policies/learned/network_config.hpp"))
    read = set(re.findall(r'\.read\w*\(\s*"(\w+)"', code))
    names = re.search(r"bounded_figure_names\{(.*?)\};", (ROOT / "src/rl/train_config.hpp").read_text(), re.DOTALL).group(1)
    read |= set(re.findall(r'"(\w+)"', names))
    section = (ROOT / "docs/train.md").read_text().split("## The configuration")[1].split("\n## ")[0]
    named = {part for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for word in re.findall(r"`([\w/]+)`", row)
             for part in word.split("/")}
    return [f"docs/train.md does not name the key {key}" for key in sorted(read - named)] + [
        f"docs/train.md names a key that nothing reads: {key}" for key in sorted(named - read)]


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    if sys.argv[1:]:
        problems = train_keys() + ([] if PAGE.read_text() == page() else ["docs/configuration.md: run scripts/configuration_page.py"])
        sys.exit("\n".join(problems) or 0)
    PAGE.write_text(page())
