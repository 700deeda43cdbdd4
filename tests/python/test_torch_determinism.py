"""``torch.use_deterministic_algorithms``: which ops a call launches. That their results are the same bits is a GPU's to
show; on the CPU every kernel's are.
"""

import gc
import unittest

from torch_support import torch

import hstujit
from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch  # noqa: F811
    from hstujit.torch import _determinism, _native

    ops = torch.ops.hstujit


@unittest.skipUnless(torch, "PyTorch is not installed")
class Flag(unittest.TestCase):
    def setUp(self):
        self.addCleanup(gc.collect)  # the context goes here, and not in a test that counts what is left behind
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.addCleanup(hstujit.set_default_context, hstujit.default_context())
        self.context = hstujit.Context()
        hstujit.set_default_context(self.context)

    def launched(self, call):
        """Which kinds of ops the call made: operator, direction, and whether it is deterministic."""
        before = set(self.context._ops)
        call()
        made = set(self.context._ops) - before
        return {
            (op, direction, is_deterministic)
            for op, direction, backend, is_deterministic, *_ in made
            if backend == "host"
        }

    def attention(self):
        (q, *rest), _ = torch_cases.attention()
        ops.hstu_attention(q.requires_grad_(), *rest, precision="ieee").sum().backward()

    def test_calls_follow_the_flag(self):
        kinds = {("hstu_attention", "forward"), ("hstu_attention", "backward")}
        for is_set in (False, True):
            torch.use_deterministic_algorithms(is_set)
            self.assertEqual(self.launched(self.attention), {(*kind, is_set) for kind in kinds})
        for is_set in (False, True):
            torch.use_deterministic_algorithms(is_set)
            self.assertEqual(self.launched(self.attention), set(), "plans of both are kept")

    def test_backward_follows_the_flag_of_its_own_time(self):
        (q, *rest), _ = torch_cases.attention()
        out = ops.hstu_attention(q.requires_grad_(), *rest, precision="ieee")
        torch.use_deterministic_algorithms(True)
        self.assertEqual(self.launched(lambda: out.sum().backward()), {("hstu_attention", "backward", True)})

    def test_through_the_dispatcher_and_in_a_graph(self):
        (q, *rest), _ = torch_cases.attention()
        call = ops.hstu_attention
        compiled = torch.compile(call, backend="eager", fullgraph=True)
        for way in (lambda: call._op(q, *rest), lambda: compiled(q, *rest)):
            for is_set in (False, True):
                hstujit.set_default_context(hstujit.default_context())  # forgets every plan
                self.context._ops = type(self.context._ops)(self.context._ops.most)
                self.context._plans.clear()
                torch.use_deterministic_algorithms(is_set, warn_only=is_set)
                self.assertEqual(self.launched(way), {("hstu_attention", "forward", is_set)})

    @unittest.skipUnless(torch and hstujit.torch.dispatch == "native", "kernels are not in C++")
    def test_a_pytorch_that_tells_nothing_in_cpp_is_asked_in_python(self):
        replace = _native.loaded(str(_native._library.path().parent / _native.FILE)).library.hstujit_torch_replace
        replace.restype, replace.argtypes = _native.ctypes.c_void_p, [_native.ctypes.c_char_p, _native.ctypes.c_void_p]
        found = replace(b"global_context", None)
        self.addCleanup(replace, b"global_context", found)
        self.assertTrue(found)
        torch.use_deterministic_algorithms(True)
        self.assertEqual({is_deterministic for *_, is_deterministic in self.launched(self.attention)}, {True})

    def test_what_is_refused_for_the_flag_is_said_as_pytorch_says_it(self):
        refusal = errors.InvalidArgumentError("it varies, and deterministic ones are asked for")
        other = errors.InvalidArgumentError("q is wrong")
        torch.use_deterministic_algorithms(True)
        words = (
            r"^hstujit::silu does not have a deterministic implementation, but you set 'torch.use_determ.*\(it varies"
        )
        self.assertRegex(str(_determinism.refused("silu", refusal)), words)
        self.assertIs(_determinism.refused("silu", other), other)
        torch.use_deterministic_algorithms(False)
        self.assertIs(_determinism.refused("silu", refusal), refusal)


if __name__ == "__main__":
    unittest.main()
