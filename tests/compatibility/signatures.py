#!/usr/bin/env python3
"""Writes what the public packages' operators take, of the commits that are tested: names, order and defaults.

    tests/compatibility/signatures.py --checkout tzrec=DIR --checkout generative_recommenders=DIR

DIR is a clone that has the commit, with or without a work tree. tests/python/test_torch_signatures.py compares with
what is written, signatures.json.
"""

import argparse
import ast
import json
import pathlib
import subprocess

from packages import PACKAGES
from run import pair

OUT = pathlib.Path(__file__).resolve().with_suffix(".json")
MODULES = ("hstu_attention", "hstu_compute", "jagged_tensors", "layer_norm", "mm", "position")


def signature(function: ast.FunctionDef) -> str:
    """``name`` or ``name=default`` of each argument."""
    names = [argument.arg for argument in function.args.args]
    defaults = [""] * (len(names) - len(function.args.defaults))
    defaults += ["=" + ast.unparse(default) for default in function.args.defaults]
    return ", ".join(name + default for name, default in zip(names, defaults))


def functions(clone: pathlib.Path, commit: str, path: str) -> dict[str, str]:
    shown = subprocess.run(
        ["git", "-C", str(clone), "show", f"{commit}:{path}"], capture_output=True, text=True, check=True
    )
    found = [node for node in ast.parse(shown.stdout).body if isinstance(node, ast.FunctionDef)]
    return {node.name: signature(node) for node in found if not node.name.startswith("_")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=pair, action="append", required=True, metavar="PACKAGE=DIR")
    recorded = {}
    for name, clone in sorted(parser.parse_args().checkout):
        commit = PACKAGES[name].commit
        modules = {f"ops.{module}": functions(clone, commit, f"{name}/ops/{module}.py") for module in MODULES}
        recorded[name] = {"commit": commit, "functions": modules}
    OUT.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
