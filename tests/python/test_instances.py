"""Memory of instances is bounded: what a context keeps of its calls, and what becomes of the rest."""

import gc
import threading
import unittest
import weakref
from unittest import mock

import numpy
import support
from torch_support import torch

import hstujit
from hstujit import _calls
from hstujit._calls import Call

if torch:
    import hstujit.torch  # noqa: F811
    from hstujit.torch import _native

MOST = 8


class Calls(unittest.TestCase):
    """Calls that are alive are counted, which keep the ops that they launch, and these are what takes memory."""

    def setUp(self):
        if not support.has_host_backend():
            self.skipTest("there is no host backend")
        self.before = hstujit.default_context()
        self.context = hstujit.Context()
        hstujit.set_default_context(self.context)
        limit = mock.patch.object(_calls, "MOST_CALLS", MOST)
        limit.start()
        self.addCleanup(limit.stop)
        self.addCleanup(hstujit.set_default_context, self.before)
        self.made = made = weakref.WeakSet()
        create = Call.__init__

        def noted(call, *arguments):
            made.add(call)
            create(call, *arguments)

        Call.__init__ = noted
        self.addCleanup(setattr, Call, "__init__", create)

    def alive(self):
        gc.collect()
        return len([call for call in self.made if call._handle])

    def check(self, call, most):
        """``call(i)`` computes instance ``i``. More of them leave no more calls than a few, and results stay."""
        first = [call(i) for i in range(1, 4)]
        for i in range(4, 60):
            call(i)
            if i % 10 == 0:
                self.assertIn(self.alive(), range(1, most + 1))
        for i, expected in enumerate(first, 1):  # these are made again
            numpy.testing.assert_array_equal(call(i), expected)

    def test_of_functions(self):
        q = support.random(support.ROWS, 1, 8)

        def call(i):
            return hstujit.hstu_attention(q, q, q, support.OFFSETS, 8, 0.1, max_attn_len=i)

        self.check(call, MOST)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_of_fakes_of_operators_of_pytorch(self):
        """Those of launches are in C++: tests/python_native/plan_test.cpp."""
        q, offsets = torch.empty(6, 1, 8, device="meta"), torch.empty(4, dtype=torch.int64, device="meta")

        def call(i):
            return torch.ops.hstujit.hstu_attention(q, q, q, offsets, 8, 0.1, max_attn_len=i).shape

        self.check(call, MOST)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_of_threads_that_use_the_same_instances(self):
        self.keep_plans(MOST)
        attention = self.attention()
        expected = {i: attention(i) for i in range(1, 14)}
        wrong = []

        def use(seed):
            for i in range(40):
                instance = 1 + i * seed % 13
                if not numpy.array_equal(attention(instance), expected[instance]):
                    wrong.append(instance)

        threads = [threading.Thread(target=use, args=(seed,)) for seed in (1, 3, 5, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def attention(self):
        q = torch.from_numpy(support.random(support.ROWS, 1, 8))
        offsets = torch.from_numpy(support.OFFSETS)
        return lambda i: torch.ops.hstujit.hstu_attention(q, q, q, offsets, 8, 0.1, max_attn_len=i).numpy()

    def keep_plans(self, most):
        library = _native.native_library()
        library.call("keep_plans", most)
        self.addCleanup(library.call, "keep_plans", 512)


if __name__ == "__main__":
    unittest.main()
