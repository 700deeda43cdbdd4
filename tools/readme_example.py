#!/usr/bin/env python3
"""Puts examples/attention.cpp into the README, from its first #include on.

    tools/readme_example.py            rewrite the block between the example:begin and example:end markers of README.md
    tools/readme_example.py --check    exit 1, with the difference, when the block is not what would be written
"""
import argparse
import pathlib
import re
import sys

from bench_table import Mistake, ROOT, bring_in_step, with_block

BEGIN = "<!-- example:begin -->"
END = "<!-- example:end -->"


def shown(path):
    source = path.read_text(encoding="utf-8")
    first = re.search(r"^#include ", source, flags=re.M)
    if first is None:
        raise Mistake(f"{path} has no #include, from which on the README shows it")
    return f"```cpp\n{source[first.start():]}```\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the README is out of step")
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT / "examples" / "attention.cpp")
    options = parser.parse_args(arguments)

    readme = options.readme.read_text(encoding="utf-8")
    wanted = with_block(readme, shown(options.source), options.readme, BEGIN, END)
    return bring_in_step(options.readme, readme, wanted, options.source, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"readme_example: {mistake}", file=sys.stderr)
        sys.exit(2)
