#!/usr/bin/env python3
"""The output that users' pages show is what their commands print.

    pages.py DOCS TOOL   exit 1, with what a page shows and no command printed; 77 where there is no NVRTC

Of each page below, the blocks of commands in some sections are run from top to bottom, as one user would: in one
folder, with the examples, and with a cache that no other page has. What the page shows is

- a last line: a code span such as `prewarmed: 6 kernels, 6 compiled, 0 hits`, in any section. One in a section that is
  run is among the last lines of the block above it, any other one among all. `…` stands for anything, and a capital
  letter for a number;
- a mistake: an indented line that begins with a file, a line and a column. `check` says it of the config given here.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from kept import kept_folder  # noqa: E402

WORDS = "prewarmed|checked|exported|imported|verified|frozen|valid"
SPAN = re.compile(rf"`((?:{WORDS}): [^`]*)`")
MISTAKE = re.compile(r"^ +(?:hstujit: )?(model\.json:\d+:\d+: .*)$", re.M)

ATTENTION = "\"op\": \"hstu_attention\", \"heads\": 2, \"attn_dim\": 64, \"hidden_dim\": 64, \"max_seq_len\": 256"
MISTAKEN = """{"version": 1,
 "ops": [
  {"max_atn_len": 5, "name": "a", "dtype": "bf16", ATTENTION},
INDENT{"dtype": "bfloat16", "name": "b", ATTENTION}]}
""".replace("ATTENTION", ATTENTION)

# By page: the sections whose commands are run, each with variables that its machine has, further commands, and a config
# with mistakes.
PAGES = {
    "deployment.md": {
        "sections": ["A serving image, built without a GPU", "An air-gapped cluster",
                     "Ranks that choose the same kernels"],
    },
    "cli.md": {
        "sections": ["A first session"],
        "further": ["hstujit prewarm --config examples/configs/ml100k.json --arch sm_90a --check"],
        "mistaken": MISTAKEN.replace("INDENT", " " * 8),
    },
    "config.md": {"sections": [], "mistaken": MISTAKEN.replace("INDENT", " " * 2)},
}


def sections_of(text):
    """Pairs of a heading and what is below it."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def parts_of(section):
    """The section as pairs of commands and the text up to the next ones."""
    parts = [([], [])]
    for line in section.splitlines():
        indented = re.match(r"^ {4,}((?:export|hstujit) .*)$", line)
        if indented:
            if parts[-1][1]:
                parts.append(([], []))
            parts[-1][0].append(indented[1])
        elif line.strip() or parts[-1][1]:
            parts[-1][1].append(line.strip())
    return [(commands, " ".join(texts)) for commands, texts in parts]


def matches(shown, printed):
    pattern = "".join(".*" if part == "…" else r"\d+" if re.fullmatch("[A-Z]", part) else re.escape(part)
                      for part in re.split(r"(…|\b[A-Z]\b)", shown))
    return re.fullmatch(pattern, printed) is not None


class User:
    """Somebody with a folder, who types what a page says."""

    def __init__(self, folder, docs, tool):
        self.folder = folder
        (folder / "examples").symlink_to(docs.parent / "examples")
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith("HSTUJIT_")}
        if kept := kept_folder("host"):
            self.variables["HSTUJIT_HOST_CACHE"] = kept
        self.variables |= {"PATH": f"{tool.parent}:{os.environ['PATH']}", "HSTUJIT_CACHE_DIR": str(folder / "own")}
        self.failures = []

    def run(self, commands):
        """The last line of each; variables that a block exports last until the next section."""
        last = []
        exports = []
        for command in commands:
            command = command.replace("/opt/model", str(self.folder))
            if command.startswith("export"):
                exports.append(command)
                continue
            script = "\n".join([*self.exported, *exports, command])
            result = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.variables, capture_output=True,
                                    text=True, check=False)
            if result.returncode != 0 and not command.startswith("hstujit doctor"):
                self.failures.append(f"{command} ends with {result.returncode}: {result.stderr}")
            last += result.stdout.splitlines()[-1:]
        self.exported += exports
        return last

    def enter(self):
        self.exported = []


def check_lines(page, of_page, user):
    everything, elsewhere, shown = [], [], 0
    for heading, section in sections_of(page.read_text(encoding="utf-8")):
        runs = heading in of_page["sections"]
        user.enter()
        printed = []
        for commands, text in parts_of(section):
            if runs and commands:
                printed = user.run(commands)
                everything += printed
            for span in SPAN.findall(text):
                shown += 1
                if not runs:
                    elsewhere.append(span)
                elif not any(matches(span, line) for line in printed):
                    yield f"{page.name} shows `{span}`; printed was\n  " + "\n  ".join(printed)
    user.enter()
    everything += user.run(of_page.get("further", []))
    for span in elsewhere:
        if not any(matches(span, line) for line in everything):
            yield f"{page.name} shows `{span}`; printed was\n  " + "\n  ".join(everything)
    if of_page["sections"] and not shown:
        yield f"{page.name} shows of no command what it prints"


def check_mistakes(page, config, user):
    (user.folder / "model.json").write_text(config, encoding="utf-8")
    result = subprocess.run(["bash", "-c", "hstujit check --config model.json"], cwd=user.folder, env=user.variables,
                            capture_output=True, text=True, check=False)
    said = [line.removeprefix("hstujit: ") for line in result.stderr.splitlines()]
    shown = MISTAKE.findall(page.read_text(encoding="utf-8"))
    for line in shown:
        if not any(matches(line.replace("(...)", "(…)"), other) for other in said):
            yield f"{page.name} shows {line}\n  check says\n  " + "\n  ".join(said)
    if not shown:
        yield f"{page.name} shows no mistake of model.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("docs", type=pathlib.Path)
    parser.add_argument("tool", type=pathlib.Path)
    options = parser.parse_args()
    doctor = subprocess.run([options.tool, "doctor", "--json"], capture_output=True, text=True, check=False)
    if not json.loads(doctor.stdout)["nvrtc"]["ok"]:
        print("there is no NVRTC")
        return 77
    found = []
    for name, of_page in PAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            user = User(pathlib.Path(folder), options.docs.resolve(), options.tool.resolve())
            found += check_lines(options.docs / name, of_page, user)
            if "mistaken" in of_page:
                found += check_mistakes(options.docs / name, of_page["mistaken"], user)
            found += user.failures
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
