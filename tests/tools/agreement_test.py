#!/usr/bin/env python3
"""bench/agreement.py: what peer scripts may time. It is tested without PyTorch, on tensors of what it asks of them."""
import contextlib
import io
import math
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import agreement


class Tensor:
    """A vector. It counts as of any shape."""

    def __init__(self, *values):
        self.values, self.shape = values, (len(values),)

    def numel(self):
        return len(self.values)

    def detach(self):
        return self

    def double(self):
        return self

    def reshape(self, shape):
        assert shape == self.shape
        return self

    def norm(self):
        return math.hypot(*self.values)

    def __sub__(self, other):
        return Tensor(*(a - b for a, b in zip(self.values, other.values)))


class Distance(unittest.TestCase):
    def test_is_relative_and_of_the_worst_tensor(self):
        found, reference = [Tensor(3.0, 4.0), Tensor(0.0, 11.0)], [Tensor(3.0, 4.0), Tensor(0.0, 10.0)]
        self.assertAlmostEqual(agreement.distance(found, reference), 0.1)

    def test_of_what_cannot_be_compared_is_infinite(self):
        for found, reference in (([Tensor(math.nan)], [Tensor(1.0)]), ([Tensor(math.inf)], [Tensor(1.0)]),
                                 ([Tensor(1.0)], [Tensor(1.0, 2.0)]), ([Tensor(1.0)], [Tensor(1.0)] * 2), ([Tensor(1e-9)], [Tensor(0.0)])):
            self.assertEqual(agreement.distance(found, reference), math.inf)
        self.assertEqual(agreement.distance([Tensor(0.0)], [Tensor(0.0)]), 0.0)


class Checks(unittest.TestCase):
    def checked(self, dtype, **apart):
        """Whether a way that is so far from the reference may be timed, its cell, and the exit code."""
        judge, result = agreement.Agreement(), {"name": "cell"}
        with contextlib.redirect_stderr(io.StringIO()) as self.said:
            good = judge.check(result, "triton", dtype, {kind: [Tensor(1 + far)] for kind, far in apart.items()},
                               {kind: [Tensor(1.0)] for kind in apart})
        return good, result, judge.exit_code()

    def test_a_way_within_its_type_is_timed_and_its_distance_noted(self):
        good, result, code = self.checked("bf16", forward=0.002, gradients=0.02)
        self.assertEqual((good, code), (True, 0))
        self.assertAlmostEqual(result["difference"]["triton"]["gradients"], 0.02)
        self.assertNotIn("not_compared", result)

    def test_a_way_that_computes_something_else_is_not_timed_and_fails_the_script(self):
        # The text that the record of layers once had beside a ratio of times.
        good, result, code = self.checked("bf16", forward=0.30832)
        self.assertEqual((good, code), (False, 1))
        self.assertNotIn("difference", result)
        self.assertIn("forward 0.308 (at most 0.018)", result["not_compared"]["triton"])
        self.assertIn("cell, triton: ", self.said.getvalue())

    def test_either_kind_of_result_decides(self):
        self.assertFalse(self.checked("bf16", forward=0.0, gradients=0.31)[0])
        self.assertFalse(self.checked("bf16", forward=math.nan, gradients=0.0)[0])

    def test_types_have_their_own_limits(self):
        self.assertTrue(self.checked("bf16", forward=0.005)[0])
        self.assertTrue(self.checked("fp16", forward=0.005)[0])
        self.assertFalse(self.checked("tf32", forward=0.005)[0])
        self.assertFalse(self.checked("fp32", forward=1e-4)[0])


class Scripts(unittest.TestCase):
    def test_every_peer_script_compares_before_it_times_and_ends_with_what_came_of_it(self):
        scripts = sorted((ROOT / "bench").glob("*_peers.py"))
        self.assertGreaterEqual(len(scripts), 6)
        for script in scripts:
            text = script.read_text(encoding="utf-8")
            self.assertRegex(text, r"agreement\.check\(", script.name)
            self.assertRegex(text, r"sys\.exit\(main\(\)\)", script.name)
            self.assertTrue(re.search(r"return agreement\.exit_code\(\)|return 1 if wrong else 0", text), script.name)


if __name__ == "__main__":
    unittest.main()
