#!/usr/bin/env python3
"""Type stubs of the operators, for editors and type checkers: tools/python_stubs.py FOLDER

The operators are made when they are asked for, so a checker cannot see them. Installations have these files. The
package is the one that Python finds, and its library describes the operators.
"""

from __future__ import annotations

import inspect
import pathlib
import sys
import textwrap
from typing import Any

import hstujit
from hstujit.operators import names as operator_names

_HEAD = '''"""Written by tools/python_stubs.py from the operators of hstu-jit {version}."""

from typing import TypeVar

from .context import Context
from .typing import Array

_A = TypeVar("_A", bound=Array)
'''


def operators_stub() -> str:
    parts = [_HEAD.format(version=hstujit.__version__)]
    for short, name in sorted(operator_names().items(), key=lambda entry: (entry[0] != entry[1], entry)):
        function = getattr(hstujit, name)
        parts.append(f"{short} = {name}\n" if short != name else _definition(function))
    return "\n".join(parts)


def _definition(function: Any) -> str:
    """The result is of the framework of the first array."""
    first, *others = function.__signature__.parameters.values()
    results = {"out": "_A | tuple[_A, ...] | None"}
    parameters = [first.replace(annotation="_A")]
    parameters += [p.replace(annotation=results.get(p.name, p.annotation)) for p in others]
    outputs = function.interface.outputs
    optional = any(output.name in function.interface.optional for output in outputs)
    several = "tuple[_A, ...]" if optional else f"tuple[{', '.join(['_A'] * len(outputs))}]"
    one_or_more = sum(output.name not in function.interface.optional for output in outputs) == 1 and len(outputs) > 1
    result = "_A" if len(outputs) == 1 else f"_A | {several}" if one_or_more else several
    docstring = textwrap.indent(f'"""{function.__doc__}\n"""', "    ")
    signature = inspect.Signature(parameters, return_annotation=result)
    return f"def {function.__name__}{signature}:\n{docstring}\n"


def package_stub() -> str:
    """Stubs of ``hstujit`` itself: the names of __init__.py, and the operators."""
    modules = {name: getattr(getattr(hstujit, name), "__module__", "hstujit") for name in hstujit.__all__}
    modules.update(dict.fromkeys(sorted(operator_names()), "hstujit.operators"))
    lines = [f"from {module} import {name} as {name}" for name, module in modules.items()]
    return "\n".join([*lines, "", "__version__: str", ""])


def main(folder: str) -> None:
    target = pathlib.Path(folder)
    (target / "operators.pyi").write_text(operators_stub(), encoding="utf-8")
    (target / "__init__.pyi").write_text(package_stub(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
