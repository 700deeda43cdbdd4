"""Stand-ins for other packages in tests/compatibility, and the lists and tables of its runner."""

import importlib
import pathlib
import re
import sys
import unittest

from torch_support import torch

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "compatibility"
PAGE = FOLDER.parents[1] / "docs" / "compatibility.md"


def load(name):
    """A module of that folder; its names stay out of other tests."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


class Runner(unittest.TestCase):
    def test_the_page_has_the_commits_that_are_tested(self):
        text = PAGE.read_text(encoding="utf-8")
        for package in load("packages").PACKAGES.values():
            self.assertIn(f"| `{package.name}` |", text)
            self.assertIn(f"`{package.commit[:12]}`", text)
            self.assertTrue(package.url.endswith(re.search(rf"{package.name}` \| `([^`]+)`", text)[1]))

    def test_what_is_left_out(self):
        package = load("packages").PACKAGES["tzrec"]
        self.assertIn("CUTLASS", package.reason_to_leave_out("hstu_attention_test.py::A.test_attn_cutlass"))
        self.assertEqual(package.reason_to_leave_out("hstu_attention_test.py::A.test_attn_triton"), "")

    def test_a_table_of_results(self):
        run = load("run")
        calls = {"ops.mm.addmm": {"ours": 3, "reference": 5, "fell_back": {"fp64": 2}}}
        results = {
            "a/mm_test.py::MM.test_addmm": {"result": "passed", "reason": "", "calls": calls},
            "a/mm_test.py::MM.test_other": {"result": "left out", "reason": "no operator", "calls": {}},
        }
        package = {"commit": "0" * 40, "results": results, "not_run": {"cpp": "an extension"}}
        lines = run.markdown({"packages": {"tzrec": package}}).splitlines()
        self.assertIn("| `mm_test.py` test_addmm | passed | 3 | 2 | fp64 |", lines)
        self.assertIn("| `mm_test.py` test_other | left out | 0 | 0 | no operator |", lines)
        self.assertIn("| `cpp` | left out | 0 | 0 | an extension |", lines)
        self.assertEqual(run.pair("tzrec=x")[0], "tzrec")


@unittest.skipUnless(torch, "PyTorch is not installed")
class StandIns(unittest.TestCase):
    def test_rows_and_padding(self):
        stand_ins = load("stand_ins")
        offsets = stand_ins.complete_cumsum(torch.tensor([3, 0, 5]))
        self.assertEqual(offsets.tolist(), [0, 3, 3, 8])
        values = torch.arange(16.0).view(8, 2).requires_grad_()
        dense = stand_ins.to_padded_dense(values, [offsets], [4], -1.0)
        expected = torch.full((3, 4, 2), -1.0)
        expected[0, :3], expected[2] = values[:3], values[3:7]
        self.assertTrue(torch.equal(dense, expected))
        back, _ = stand_ins.to_jagged(dense, [offsets])
        self.assertTrue(torch.equal(back[:7], values[:7]))
        self.assertFalse(back[7].any())  # it was cut off
        back.sum().backward()
        self.assertEqual(values.grad[:, 0].tolist(), [1.0] * 7 + [0.0])
        added, _ = stand_ins.add_dense(values, [offsets], torch.ones(3, 5, 2))
        self.assertTrue(torch.equal(added, values + 1))
        ages = stand_ins.to_padded_dense(torch.arange(8), [offsets], [5])
        self.assertEqual(ages[2].tolist(), [3, 4, 5, 6, 7])

    def test_modules_without_contents(self):
        stand_ins = load("stand_ins")
        self.addCleanup(lambda: [sys.modules.pop(name, None) for name in ("nobody_has", "nobody_has.this")])
        self.assertEqual(stand_ins.add_absent(("nobody_has.this", "json"), "package"), ["nobody_has.this"])
        module = importlib.import_module("nobody_has.this")
        self.assertNotIsInstance({}, module.Message)
        with self.assertRaises(ImportError):
            importlib.import_module("nobody_has.other")
