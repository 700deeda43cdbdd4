"""Calls without PyTorch's dispatcher (hstujit/torch/_direct.py): which ones there are, that their results are the
dispatcher's, and that they leave nothing behind.
"""

import gc
import inspect
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import unittest
import warnings
from unittest import mock

from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    from hstujit.torch import _direct, _native

    ops = torch.ops.hstujit

ROOT = pathlib.Path(__file__).resolve().parents[2]
HAS_API = torch is not None and hasattr(torch.Tensor, "__dlpack_c_exchange_api__")


def arguments(**more):
    (q, k, v, *rest), _ = torch_cases.attention()
    return (q, k, v, *rest), {"precision": "ieee", **more}


RECORDED = object()


def directly(*inputs, op="hstu_attention", **named):
    """What a call gives without the dispatcher. RECORDED where autograd is to record it, else NotImplemented."""
    called = getattr(ops, op)
    with mock.patch.object(
        called._hstujit_front, "call", lambda recorded, *_: RECORDED if recorded else NotImplemented
    ):
        return called(*inputs, **named)


def below(*inputs, op="hstu_attention", **named):
    return getattr(ops, op)._hstujit_front.below(*inputs, **named)


def at_once(result):
    return result if isinstance(result, tuple) else (result,)


@unittest.skipUnless(HAS_API, "this PyTorch has no DLPackExchangeAPI")
class Direct(unittest.TestCase):
    def test_every_operator_gives_what_the_dispatcher_gives(self):
        through, computed = 0, 0
        for name, op, inputs, named in torch_cases.cases():
            with self.subTest(name):
                result = directly(*inputs, op=op, **named)
                computed += 1
                if result is NotImplemented:  # the sizes of its outputs are in tensors
                    through += 1
                    continue
                expected = below(*inputs, op=op, **named)
                self.assertEqual(type(result), type(expected))
                for ours, theirs in zip(at_once(result), at_once(expected), strict=True):
                    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
                    self.assertEqual((ours.stride(), ours.dtype), (theirs.stride(), theirs.dtype))
        self.assertLess(through, computed / 4)

    def test_in_any_order_and_with_parameters(self):
        (q, k, v, offsets, length, alpha), named = arguments(max_attn_len=2, score="gelu")
        expected = below(q, k, v, offsets, length, alpha, **named)
        given = {"alpha": alpha, **named, "v": v, "max_seq_len": length, "seq_offsets": offsets, "k": k}
        self.assertTrue(torch.equal(directly(q, **given), expected))
        text = "".join(["al", "pha"])  # a name that is not interned
        given[text] = given.pop("alpha")
        self.assertTrue(torch.equal(directly(q, **given), expected))

    def test_a_parameter_and_an_integer_for_a_number(self):
        (q, k, v, offsets, length, _), named = arguments()
        with torch.no_grad():
            result = directly(torch.nn.Parameter(q), k, v, offsets, length, 1, **named)
        self.assertTrue(torch.equal(result, below(q, k, v, offsets, length, 1.0, **named)))

    def test_what_autograd_records(self):
        (q, *rest), named = arguments()
        leaf = q.clone().requires_grad_()
        self.assertIs(directly(leaf, *rest, **named), RECORDED)
        with torch.no_grad():
            self.assertFalse(directly(leaf, *rest, **named).requires_grad)
        with torch.inference_mode():
            self.assertTrue(directly(q, *rest, **named).is_inference())
        self.assertTrue(ops.hstu_attention(leaf, *rest, **named).requires_grad)

    def test_where_something_else_has_a_say(self):
        inputs, named = arguments()

        class Functions(TorchFunctionMode):
            def __torch_function__(self, function, types, given=(), more=None):
                return function(*given, **(more or {}))

        class Dispatched(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, given=(), more=None):
                return function(*given, **(more or {}))

        modes = {
            "functions": Functions(),
            "dispatched": Dispatched(),
            "autocast": torch.autocast("cpu", dtype=torch.bfloat16),
            "profiler": torch.autograd.profiler.profile(),
            "forward mode": torch.autograd.forward_ad.dual_level(),
            "device": torch.device("cpu"),
        }
        for name, mode in modes.items():
            with self.subTest(name), mode:
                self.assertIs(directly(*inputs, **named), NotImplemented)
        self.assertIsNot(directly(*inputs, **named), NotImplemented)

        seen = []

        def transformed(q):
            seen.append(directly(q, *inputs[1:], **named))
            return q.sum()

        torch.func.grad(transformed)(inputs[0])
        torch.func.vmap(transformed)(inputs[0][None])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.trace(transformed, inputs[0], check_trace=False)
        self.assertEqual(seen, [NotImplemented] * 3)

    def test_a_kernel_that_somebody_registered_is_called(self):
        """Forward and backward, with and without gradients, until its library is gone."""
        x = torch.randn(3, 16, requires_grad=True)
        expected = ops.rms_norm(x.detach())
        calls = []

        def forward(x, *rest, **named):
            calls.append("forward")
            return x * 2

        def backward(x, dout, *rest, **named):
            calls.append("backward")
            return dout * 3, torch.empty(0)

        with warnings.catch_warnings(), torch.library._scoped_library("hstujit", "IMPL") as library:
            warnings.simplefilter("ignore")  # PyTorch warns of a kernel that takes the place of another
            library.impl("rms_norm", forward, "CPU")
            torch.library.register_kernel("hstujit::rms_norm_backward", "cpu", backward, lib=library)
            self.assertTrue(torch.equal(ops.rms_norm(x.detach()), 2 * x))
            self.assertTrue(torch.equal(ops.rms_norm.default(x.detach()), 2 * x))
            out = ops.rms_norm(x)
            self.assertTrue(torch.equal(out, 2 * x))
            out.sum().backward()
            self.assertTrue(torch.equal(x.grad, torch.full_like(x, 3)))
            with torch.autocast("cpu", torch.bfloat16):
                ops.rms_norm(x)
            self.assertEqual(calls, ["forward"] * 3 + ["backward", "forward"])
        self.assertTrue(torch.equal(ops.rms_norm(x.detach()), expected))
        self.assertEqual(len(calls), 5)

    def test_what_is_traced_before_the_dispatcher(self):
        x, y = torch_cases.tensor(4, 16), torch_cases.tensor(4, 16, seed=1)
        traced = make_fx(lambda value: ops.layer_norm(value), pre_dispatch=True)(x)
        self.assertIn("hstujit.layer_norm.default", traced.code)
        self.assertTrue(torch.equal(traced(y), ops.layer_norm(y)))

    def test_an_operator_has_a_signature(self):
        for op in (ops.layer_norm, ops.layer_norm.default):
            parameters = inspect.signature(op).parameters
            self.assertEqual(list(parameters), ["x", "weight", "bias", "eps", "residual"])
            self.assertIs(parameters["residual"].default, False)

    def test_a_call_while_the_interpreter_ends(self):
        code = """
import sys, torch, hstujit.torch
op, x = torch.ops.hstujit.layer_norm, torch.randn(4, 16)
op(x)
class Late:
    def __del__(self, op=op, x=x):
        op(x)
sys.late = Late()
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_profile_lists_the_operator(self):
        inputs, named = arguments()
        with torch.autograd.profiler.profile() as profile:
            ops.hstu_attention(*inputs, **named)
        self.assertIn("hstujit::hstu_attention", [event.name for event in profile.function_events])

    def test_tensors_that_are_not_in_memory_as_they_are_read(self):
        (q, *rest), named = arguments()
        negated = torch._neg_view(q)
        self.assertIs(directly(negated, *rest, **named), NotImplemented)
        expected = ops.hstu_attention(-q, *rest, **named)
        self.assertTrue(torch.equal(ops.hstu_attention(negated, *rest, **named), expected))
        offsets = torch._neg_view(-rest[2])
        self.assertIs(directly(q, *rest[:2], offsets, *rest[3:], **named), NotImplemented)
        self.assertIs(directly(q[:0], *[value[:0] for value in rest[:2]], *rest[2:], **named), NotImplemented)
        zeros = torch._efficientzerotensor(q.shape)
        self.assertIs(directly(zeros, *rest, **named), NotImplemented)
        for other in (q.to("meta"), q.to_sparse(), q.double(), torch.quantize_per_tensor(q, 1.0, 0, torch.qint8)):
            self.assertIs(directly(other, *rest, **named), NotImplemented)

    def test_arguments_that_the_dispatcher_is_to_look_at(self):
        (q, k, v, offsets, length, alpha), named = arguments()

        class Other(torch.Tensor):
            pass

        for given, more in (
            ((q.as_subclass(Other), k, v, offsets, length, alpha), {}),
            ((q, k, v, offsets, length), {}),  # one is missing
            ((q, k, v, offsets, length, alpha), {"q": q}),  # one twice
            ((q, k, v, offsets, length, alpha), {"querry": q}),
            ((q, k, v, offsets, length, alpha, None, None, None, 0, "tf32"), {}),  # a keyword without its name
            ((q, k, v, offsets, float(length), alpha), {}),
            ((q, k, v, offsets, 2**70, alpha), {}),
            ((q, k, v, offsets, length, torch.tensor(alpha)), {}),
            ((q, k, v, offsets, length, 10**400), {}),
            ((None, k, v, offsets, length, alpha), {}),
            ((q, k, v, offsets, length, alpha), {"causal": 1}),
            ((q, k, v, offsets, length, alpha), {"causal": None}),
            ((q, k, v, offsets, length, alpha), {"score": b"silu"}),
            ((q, k, v, offsets, length, alpha), {"score": "\ud800"}),  # no UTF-8
            ((q, k, v, offsets, True, alpha), {}),
        ):
            with self.subTest(given=[type(value).__name__ for value in given], more=more):
                self.assertIs(directly(*given, **more), NotImplemented)

    def test_mistakes_are_the_package_s_exceptions(self):
        (q, k, v, offsets, length, alpha), named = arguments()
        with self.assertRaisesRegex(errors.InvalidConfigError, 'score is "softmax"; allowed: silu'):
            ops.hstu_attention(q, k, v, offsets, length, alpha, score="softmax")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "k"):
            ops.hstu_attention(q, k[:, :1], v, offsets, length, alpha, **named)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "causal is None; it must be True or False"):
            ops.hstu_attention(q, k, v, offsets, length, alpha, causal=None)

    def test_nothing_is_left_behind(self):
        inputs, named = arguments()
        x = torch_cases.tensor(8, 16)

        def calls():
            directly(*inputs, **named)
            directly(x, x, op="layer_norm_backward")  # several outputs
            directly(inputs[0].double(), *inputs[1:], **named)
            with self.assertRaises(errors.InvalidConfigError):
                ops.hstu_attention(*inputs, score="softmax")

        values = (None, NotImplemented, *inputs)
        calls()
        gc.collect()
        before, references = len(gc.get_objects()), [sys.getrefcount(value) for value in values]
        for _ in range(50):
            calls()
        gc.collect()
        self.assertLess(len(gc.get_objects()) - before, 25)
        for value, count in zip(values, references, strict=True):
            if sys.getrefcount(value) < 2**31:  # those of immortal objects do not count
                self.assertLess(abs(sys.getrefcount(value) - count), 25)

    def test_a_result_is_a_tensor_as_any(self):
        inputs, named = arguments()
        result = directly(*inputs, **named)
        self.assertIs(type(result), torch.Tensor)
        self.assertTrue(result.untyped_storage().resizable())
        self.assertEqual((result._use_count(), sys.getrefcount(result)), (1, 2))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Without(unittest.TestCase):
    def test_pytorch_that_lacks_something_has_no_such_calls(self):
        library = _native.native_library()
        for owner, name in (
            (torch._C._aoti, "alloc_tensors_by_stealing_from_void_ptrs"),
            (torch._C._autograd, "_profiler_enabled"),
            (torch._C, "_len_torch_function_stack"),
        ):
            with self.subTest(name), mock.patch.object(owner, name):
                delattr(owner, name)
                self.assertFalse(_direct.has_direct_calls(library))
        with mock.patch.object(torch.Tensor, "__dlpack_c_exchange_api__", None, create=True):
            self.assertFalse(_direct.has_direct_calls(library))

    def test_then_calls_go_through_the_dispatcher(self):
        code = """
import torch
del torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs
import hstujit.torch
op = torch.ops.hstujit.layer_norm
assert not isinstance(type(op).__call__, type(len)) and not isinstance(type(op.default).__call__, type(len))
x = torch.randn(3, 16, requires_grad=True)
op(x).sum().backward()
print(x.grad.shape, op(x.detach()).shape)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("torch.Size([3, 16])", done.stdout)


@unittest.skipUnless(torch and shutil.which("c++"), "there is no C++ compiler")
class Types(unittest.TestCase):
    def test_functions_have_the_types_of_the_headers_of_python(self):
        include = sysconfig.get_path("include")
        if not pathlib.Path(include, "Python.h").exists():
            self.skipTest("Python's headers are not installed")
        source = """
            #define Py_LIMITED_API 0x030A0000
            #define _object PyObject  // which python_functions.h declares as a struct of that name
            #define _ts PyThreadState
            #include <Python.h>
            #include <type_traits>
            #include "python/native/python_functions.h"
            using hstujit::torch::PythonFunctions;
            #define SAME(result, name, arguments) \\
              static_assert(std::is_same_v<decltype(&::name), decltype(PythonFunctions::name)>, #name);
            HSTUJIT_PYTHON_FUNCTIONS(SAME)
        """
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", f"-I{include}", f"-I{ROOT}", "-x", "c++", "-"],
                              input=source, capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
