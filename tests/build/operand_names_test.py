"""Names of attention's operands stand where they are declared: skeletons, the host backend, printers, passes and the
runtime follow the list of an instance and name none of them."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = "compiler/spec/operators/hstu_attention/operands"
WITHOUT = ("compiler/driver", "compiler/emit", "compiler/host", "compiler/ir", "compiler/nvrtc", "compiler/passes",
           "compiler/plan", "runtime", "templates", "tools")
ELSEWHERE = 8  # further files that name one: its fields, other names for those, the Python package


def declared(text):
    """Operands that the mask does not read: n, t and offsets are part of every attention."""
    operands = re.findall(r"Operand\{\.name = \"(\w+)\",.*?\.use = OperandUse::(\w+),", text, re.S)
    return [name for name, use in operands if use != "kMask"]


def sources(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cuh", ".td", ".py"):
                yield path


def named(root, folders, names):
    """Files with the name of an operand, of its gradient, or of a field about it."""
    word = re.compile(r"\b(?:has_|returns_)?d?(?:" + "|".join(names) + r")(?:_before|_heads|_\w*stride)?\b")
    return [path.relative_to(root).as_posix() for path in sources(root, folders) if word.search(path.read_text())]


class OperandNames(unittest.TestCase):
    def setUp(self):
        self.names = declared((ROOT / OWN / "declarations.cpp").read_text())

    def test_declarations_are_read(self):
        self.assertIn("rab", self.names)
        self.assertIn("attn_scale", self.names)
        self.assertIn(f"{OWN}/declarations.cpp", named(ROOT, [OWN], self.names))

    def test_who_follows_the_list_names_no_operand(self):
        self.assertEqual(named(ROOT, WITHOUT, self.names), [])

    def test_few_others_do(self):
        others = [path for path in named(ROOT, ["autotune_cache", "compiler", "python"], ["rab"])
                  if not path.startswith(OWN)]
        self.assertLessEqual(len(others), ELSEWHERE, others)


if __name__ == "__main__":
    unittest.main()
