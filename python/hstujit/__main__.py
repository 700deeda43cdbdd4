"""``python -m hstujit``: the command line tool of docs/cli.md."""

from __future__ import annotations

import os
import sys

from . import _library


def main() -> None:
    """Becomes the tool, with the arguments of this process."""
    program = _library.path().parent.parent / "bin" / "hstujit"
    if not program.exists():
        sys.exit(f"hstujit: there is no executable {program}; it is installed with the library")
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
