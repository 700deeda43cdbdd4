#!/usr/bin/env python3
"""The program of docs/cpp.md: its blocks of C++, from top to bottom, and the blocks of text that it prints.

    cpp_page.py PAGE --into FILE     write the program; a file that is the same already is left alone
    cpp_page.py PAGE --run PROGRAM   exit 1, with the difference, where the program prints something else
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys


def blocks_of(page, language):
    text = page.read_text(encoding="utf-8")
    return "".join(re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S))


def differences(page, program):
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return [f"{program} ends with {result.returncode}: {result.stderr}"]
    expected = blocks_of(page, "text")
    if not expected:
        return [f"{page.name} says of nothing what it prints"]
    return list(difflib.unified_diff(expected.splitlines(), result.stdout.splitlines(), page.name, "printed", lineterm=""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--run")
    options = parser.parse_args()
    if options.into:
        program = f"// From docs/{options.page.name}.\n" + blocks_of(options.page, "cpp")
        if not options.into.exists() or options.into.read_text(encoding="utf-8") != program:
            options.into.write_text(program, encoding="utf-8")
    found = differences(options.page, options.run) if options.run else []
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
