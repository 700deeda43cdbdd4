#!/usr/bin/env python3
"""The files of the worked example in docs/adding-an-operator.md.

    extract.py PAGE --into FOLDER    write them below FOLDER; files that are the same already are left alone
    extract.py PAGE --check          exit 1 where they are too long, or one is where a row operator has none

A file is a line that is its path in backquotes, and the indented lines that follow.
"""

import argparse
import pathlib
import re
import sys

MAX_LINES = 80
OP = "bias_silu"
PLACES = (f"compiler/spec/operators/{OP}/", f"compiler/ir/operators/{OP}.cpp", f"tests/operators/{OP}/")


def files_of(page):
    pattern = re.compile(r"^`([\w./]+)`\n\n((?:    .*\n|\n)+)", re.M)
    for path, text in pattern.findall(page.read_text(encoding="utf-8")):
        yield path, re.sub(r"^    ", "", text, flags=re.M).rstrip("\n") + "\n"


def mistakes_of(files):
    if not files:
        yield "the page has no files"
    lines = sum(text.count("\n") for text in files.values())
    if lines >= MAX_LINES:
        yield f"the files have {lines} lines together; fewer than {MAX_LINES} are promised"
    for path in files:
        if not path.startswith(PLACES):
            yield f"{path} is none of {', '.join(PLACES)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    files = dict(files_of(options.page))
    if options.into:
        for path, text in files.items():
            file = options.into / path
            if file.exists() and file.read_text(encoding="utf-8") == text:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    mistakes = list(mistakes_of(files)) if options.check else []
    for mistake in mistakes:
        print(f"{options.page.name}: {mistake}", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
