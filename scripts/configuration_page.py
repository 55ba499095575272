#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/configuration.md, a table of every key of every configuration file, from their JSON Schemas.

    scripts/configuration_page.py [--check]

With --check nothing is written: exit code 1 if the page is not what the schemas say, or if docs/train.md names a key that no
configuration has.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/configuration.md"
HEAD = """# Every configuration key

One table for each kind of file, made from its JSON Schema by `scripts/configuration_page.py`; a test compares. Files are strict JSON: an unknown
key is an error that names the nearest known one. For example `{"trace": {"path": "jobs.csv"}, "cluster": "8x8", "policies": ["las"]}` is a file of
a replay. `a.b` is the key `b` of the object `a`, `a.{b,c}` are two keys with one meaning, `a[]` is an entry of the array `a`, and `*` is any name. Keys
without a default are left out, or needed where it says so.

Elsewhere: the keys of `gpusched train` ([train.md](train.md#the-configuration), `docs/train.schema.json`), of `gpusched serve`
(`docs/serve.schema.json`), of `--communication` files ([replay.md](replay.md#gangs-that-are-apart)) and of device profiles
(`src/calibration/profile/device_profile.schema.json`).
"""
CONDITIONS = """
## Conditions

`placement`, `preemption`, `failures`, `stages`, `elastic`, `changes`, `power` and `fidelity` of a [replay](#replay) have the same key and the same option in
every command; Python's functions and `VectorEnv` call them by the option (`restart_cost=60`). Commands that do not take all:

"""
# What is refused, in the order of the table of conditions.
REFUSED = (
    ("`--placement count`, or a cluster that is a pool",
     "`--failures`, `--stages` (also with `checkpoint_gib_per_gpu`), `--power`, `--span-speed`, also "
     "`--span-speed throughputs`, `--communication`"),
    ("`--placement count`", "`mig` or `sharing` of the cluster"),
    ("`--checkpoint-write`",
     "no `--checkpoint-interval` and no `--checkpoint-rule`; `checkpoint_gib_per_gpu` of `--stages`"),
    ("`checkpoint_gib_per_gpu` of `--stages`", "no `--checkpoint-interval` and no `--checkpoint-rule`"),
    ("`--checkpoint-rule young`, `daly`", "no `--failures`; no time to write; `--checkpoint-interval`"),
    ("`--changes` of the gpus of an elastic job", "`--elastic`, with or without phases"),
    ("`--trials`", "`--kill-at-limit`"),
    ("`--throughputs`", "`--profile`, `--reference-profile`, `--slowdown`"),
    ("`--reference-type`, `--throughput-fallback`, `--span-speed throughputs`, `--interference throughputs`",
     "no `--throughputs`"),
    ("`--reference-profile`, `--slowdown`", "no `--profile`"),
    ("`--communication`", "`--span-speed`, also `--span-speed throughputs`; no `links`"),
    ("`--reference-span`", "no `--span-speed` and no `--communication`"),
    ("`--placement skew`", "no `--communication`"),
    ("`arrival_scale` of `train`, `load` of a sweep, but 1", "`--changes`"),
    ("`arrival_scale` of `train` and `VectorEnv`, but 1",
     "a log of outages in `--failures`, signals in `--power` that change"),
    ("shuffled windows of `train`",
     "a log of outages in `--failures`; `--throughputs`, `--profile`, `--communication`, `--stages`, `--elastic`, `--changes`, `--power`"),
    ("several `cluster_scales` of `train`", "`--failures`, `--changes`, `--power`"),
    ("`evaluate --protocol sc20`", "`--profile`, `--throughputs`, `--services`, `--trials`, `--slurm-conf`, `--slurm-qos`, `--limits`"),
    ("`--sites`", "`--cluster`, `--slurm-conf`, `--limits`; of `evaluate` also `--slurm-qos`"),
)
FILES = (  # schema, title, what takes it, keys whose own keys another section has, what stands before the keys of a replay
    ("docs/scenario.schema.json", "Replay", "`gpusched replay --config FILE` ([replay.md](replay.md)); `--set KEY=VALUE` sets one key.", (), None),
    ("docs/evaluate.schema.json", "Evaluate", "`gpusched evaluate --config FILE` ([evaluate.md](evaluate.md)).", (), ""),
    ("docs/sweep.schema.json", "Sweep", "`gpusched sweep FILE` ([sweep.md](sweep.md)). `grid` and `list` take the keys of `base`.", ("grid", "list"),
     "base."),
    ("docs/search.schema.json", "Search", "`gpusched search FILE` ([search.md](search.md)). `base` takes the keys of a [sweep](#sweep)'s `base`.", (), None),
    ("docs/cluster.schema.json", "Cluster", "`--cluster FILE` ([traces.md](traces.md#clusters)).", (), None),
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
    node = resolve(schema, node)
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
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
        if key in node and not isinstance(node[key], bool) and not (key == "maximum" and node[key] >= 1e6):
            bounds.append(f"{'>' if key == 'minimum' and node.get('exclusiveMinimum') is True else sign} {node[key]}")
    return words + (" " + ", ".join(bounds) if bounds else "")


def rows(schema, node, path, elsewhere):
    """(key, kind, default, meaning) of every key below `node`."""
    node = resolve(schema, node)
    needed = node.get("required", [])
    alike = {}  # (whether it is needed, the child): its names
    for name, child in node.get("properties", {}).items():
        if name != "$schema":
            alike.setdefault((name in needed, name in elsewhere, json.dumps(child)), []).append(name)
    for (is_needed, is_elsewhere, text), names in alike.items():
        name, child = names[0] if len(names) == 1 else "{" + ",".join(names) + "}", json.loads(text)
        key, words, child = (f"{path}.{name}" if path else name), kind(schema, child), resolve(schema, child)
        default = f"`{json.dumps(child['default'])}`" if "default" in child else "needed" if is_needed else ""
        if (words, default) != ("object", "") or "description" in child:  # else its keys say all
            yield key, words, default, child.get("description", "")
        if not is_elsewhere:
            yield from below(schema, child, key, elsewhere)


def below(schema, node, path, elsewhere):
    """The keys of an object, of the objects of an array, or of one of several forms."""
    node = resolve(schema, node)
    yield from rows(schema, node, path, elsewhere)
    if isinstance(node.get("items"), dict):
        yield from below(schema, node["items"], path + "[]", elsewhere)
    values = node.get("additionalProperties")
    if isinstance(values, dict):
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


def without_replay(found, replay, prefix):
    """(rows that a replay does not have, a sentence with the keys that it has), of keys behind `prefix`."""
    def known(row):
        return row[0].startswith(prefix) and (row[0].removeprefix(prefix), *row[1:]) in replay

    names = dict.fromkeys(row[0].removeprefix(prefix).split(".")[0] for row in found if known(row))
    listed = ", ".join(f"`{name}`" for name in names)
    owner = f"`{prefix.rstrip('.')}` also takes" if prefix else "It also takes"
    return [row for row in found if not known(row)], f" {owner} these keys of a [replay](#replay), where the table does not have them: {listed}."


def lacking(schema, node, path=""):
    """{(who, why): keys} of the conditions below `node` that somebody does not take; an object stands for all its keys."""
    found, children = {}, node.get("properties", {})
    for name, child in children.items():
        key = f"{path}.{name}" if path else name
        for reason in child.get("x-lacking", {}).items():
            found.setdefault(reason, []).append(key)
        for reason, keys in lacking(schema, child, key).items():
            found.setdefault(reason, []).extend(keys)
    return {reason: [path] if path and len(keys) == len(children) > 1 else keys for reason, keys in found.items()}


def conditions():
    schema = json.loads((ROOT / "docs/scenario.schema.json").read_text())
    lines = ["| who | key | because |", "|---|---|---|"]
    lines += [f"| `{who}` | " + ", ".join(f"`{key}`" for key in keys) + f" | {cell(why)} |" for (who, why), keys in lacking(schema, schema).items()]
    lines += ["", "What does not go together is refused by a line that says why:", "", "| this | not with |", "|---|---|"]
    return CONDITIONS + "\n".join(lines + [f"| {this} | {other} |" for this, other in REFUSED]) + "\n"


def page():
    parts, replay = [HEAD, conditions()], set()
    for file, title, taken, elsewhere, prefix in FILES:
        schema, shared = json.loads((ROOT / file).read_text()), ""
        found = list(rows(schema, schema, "", elsewhere))
        if prefix is not None:
            found, shared = without_replay(found, replay, prefix)
        replay = replay or set(found)
        parts.append(f"\n## {title}\n\n{taken} The schema: `{file}`.{shared}\n\n" + table(found))
    return "".join(parts)


def unknown_train_keys():
    """Problems: keys in the table of docs/train.md that no configuration has."""
    schema = json.loads((ROOT / "docs/train.schema.json").read_text())
    known = {part for key, *_ in rows(schema, schema, "", ()) for part in re.split(r"[.{},]+", key)}
    section = (ROOT / "docs/train.md").read_text().split("## The configuration")[1].split("\n## ")[0]
    named = {part for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for word in re.findall(r"`([\w/]+)`", row)
             for part in word.split("/")}
    return [f"docs/train.md names a key that nothing reads: {key}" for key in sorted(named - known)]


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    if sys.argv[1:]:
        problems = unknown_train_keys()
        problems += [] if PAGE.read_text() == page() else ["docs/configuration.md: run scripts/configuration_page.py"]
        sys.exit("\n".join(problems) or 0)
    PAGE.write_text(page())
