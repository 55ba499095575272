# SPDX-License-Identifier: Apache-2.0
"""What the tables of experiments share: options, csv files of rows, and rows published | gpusched | difference as text and as csv."""
import argparse
import csv


def options_of(doc, *inputs):
    """The command line: the program, the inputs, --csv FILE and --no-published."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gpusched", *inputs):
        parser.add_argument(name)
    parser.add_argument("--csv", help="also write the table here")
    parser.add_argument("--no-published", action="store_true", help="another input than that of the published figures")
    return parser.parse_args()


def write_rows(path, rows, names=None):
    """A csv of dicts under these names, by default those of the first row. A name that is not among them is an error."""
    with open(path, "w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, list(names or rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


class Table:
    """Rows of some keys, what was published (None: nothing) and what gpusched gives."""

    def __init__(self, keys, options):
        self.keys, self.options, self.rows = keys, options, []

    def add(self, *keys, published, ours):
        published = None if self.options.no_published else published
        self.rows.append([*keys, published, ours, None if published is None else ours - published])

    def write(self, digits):
        """Prints the rows with that many digits; the csv has all of them."""
        def cell(value, sign=""):
            return "-" if value is None else format(value, f"{sign}.{digits}f")

        lines = [[*self.keys, "published", "gpusched", "difference"]]
        lines += [[*map(str, row[:-3]), cell(row[-3]), cell(row[-2]), cell(row[-1], "+")] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*lines)]
        for line in lines:
            left = [text.ljust(width) for text, width in zip(line[:-3], widths)]
            right = [text.rjust(width) for text, width in zip(line[-3:], widths[-3:])]
            print("  ".join(left + right).rstrip())
        if self.options.csv:
            with open(self.options.csv, "w", newline="") as target:
                writer = csv.writer(target, lineterminator="\n")
                writer.writerow([*self.keys, "published", "ours", "difference"])
                writer.writerows([["" if value is None else value for value in row] for row in self.rows])
