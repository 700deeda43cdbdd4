"""Kernels in C++ (python/native): what PyTorch sees of a call, errors, threads, contexts, and the types of PyTorch's
functions.
"""

import gc
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import unittest
import warnings
import weakref
from unittest import mock

from torch_support import torch

import hstujit
from hstujit import _library, errors

if torch:
    import torch_cases
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    import hstujit.torch  # noqa: F811
    from hstujit.torch import _native

    ops = torch.ops.hstujit

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def norm_arguments():
    return torch_cases.tensor(8, 16), torch_cases.tensor(16, seed=1), torch_cases.tensor(16, seed=2)


class Seen(TorchDispatchMode if torch else object):
    """Keeps the names of this package's operators that are dispatched."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.namespace == "hstujit":
            self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Library(unittest.TestCase):
    def test_a_process_without_pytorch_is_told(self):
        code = (
            "import ctypes; library = ctypes.CDLL(%r); library.hstujit_torch_refusal.restype = ctypes.c_char_p; "
            "print(library.hstujit_torch_refusal().decode())"
        )
        file = str(_library.path().parent / "libhstujit_torch.so")
        done = run(sys.executable, "-c", code % file)
        self.assertEqual(done.stdout, "PyTorch's libtorch_cpu.so is not loaded\n", done.stderr)

    def test_operators_are_there_once_it_is_loaded(self):
        file = str(_library.path().parent / "libhstujit_torch.so")
        code = (
            f"import torch; torch.ops.load_library({file!r}); x = torch.ones(2, 8); "
            "print(torch.allclose(torch.ops.hstujit.silu(x), torch.nn.functional.silu(x)))"
        )
        done = run(sys.executable, "-c", code)
        self.assertEqual(done.stdout, "True\n", done.stderr)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Types(unittest.TestCase):
    def test_functions_have_the_types_of_the_headers_of_pytorch(self):
        compiler = shutil.which("c++") or shutil.which("clang++")
        self.assertIsNotNone(compiler, "there is no C++ compiler")
        source = """
            #include <torch/csrc/stable/c/shim.h>
            #include <type_traits>
            #include "python/native/torch_functions.h"
            using hstujit::torch::Functions;
            #define SAME(name, ...) \\
              static_assert(std::is_same_v<decltype(&::name), decltype(Functions::name)>, #name);
            HSTUJIT_TORCH_CONSTANTS(SAME)
            HSTUJIT_TORCH_FUNCTIONS(SAME)
            SAME(aoti_torch_get_current_cuda_stream)
            SAME(aoti_torch_warn)
        """
        include = pathlib.Path(torch.__file__).parent / "include"
        command = (
            compiler,
            "-std=c++20",
            "-fsyntax-only",
            "-DUSE_CUDA",
            f"-I{ROOT}",
            f"-I{ROOT / 'include'}",
            f"-isystem{include}",
            "-xc++",
            "-",
        )
        done = run(*command, input=source)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(run(*command, input=source.replace("&::name", "&::aoti_torch_get_dim")).returncode, 0)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Dispatch(unittest.TestCase):
    def test_modes_and_tensors_of_other_classes_see_the_operator(self):
        x, weight, bias = norm_arguments()
        expected = ops.layer_norm(x, weight, bias)
        for leaf in (x, x.clone().requires_grad_()):
            with Seen() as seen:
                out = ops.layer_norm(leaf, weight, bias)
            self.assertEqual(seen.names, ["hstujit.layer_norm.default"])
            self.assertTrue(torch.equal(out, expected))

        class Wrapped(torch.Tensor):
            """One that PyTorch's functions do not look at, and its dispatcher does."""

            names = []
            __torch_function__ = torch._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
                cls.names.append(str(function))
                plain = [value.plain if isinstance(value, cls) else value for value in arguments]
                return function(*plain, **(keywords or {}))

        for requires_grad in (False, True):
            wrapped = torch.Tensor._make_wrapper_subclass(Wrapped, x.shape, requires_grad=requires_grad)
            wrapped.plain = x
            Wrapped.names.clear()
            self.assertTrue(torch.equal(ops.layer_norm(wrapped, weight, bias), expected))
            self.assertIn("hstujit.layer_norm.default", Wrapped.names)

        class Function(torch.Tensor):
            seen = []

            @classmethod
            def __torch_function__(cls, function, types, arguments=(), keywords=None):
                cls.seen.append(function)
                return super().__torch_function__(function, types, arguments, keywords)

        ops.layer_norm(x.as_subclass(Function), weight, bias)
        self.assertIn("layer_norm", str(Function.seen[0]))

    def test_transforms_do_not_lose_gradients(self):
        x, weight, bias = norm_arguments()

        def total(x):
            return torch.vmap(lambda rows: ops.layer_norm(rows, weight, bias))(x[None]).sum()

        torch.testing.assert_close(total(x), ops.layer_norm(x, weight, bias).sum())
        with self.assertRaisesRegex(errors.UnsupportedError, "under a transform of torch.func"):
            torch.func.grad(total)(x)

    def test_graphs_of_pytorch_hold_the_operator(self):
        x, weight, bias = norm_arguments()
        for mode in ("real", "fake", "symbolic"):
            graph = make_fx(lambda *values: ops.layer_norm(*values), tracing_mode=mode)(x, weight, bias)
            called = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
            self.assertEqual(called, ["hstujit.layer_norm.default"], mode)

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

    def test_mistakes_are_the_package_s_exceptions(self):
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        with self.assertRaisesRegex(errors.InvalidConfigError, 'score is "softmax"; allowed: silu'):
            ops.hstu_attention(q, k, v, offsets, length, alpha, score="softmax")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "k"):
            ops.hstu_attention(q, k[:, :1], v, offsets, length, alpha)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "causal is None; it must be True or False"):
            ops.hstu_attention(q, k, v, offsets, length, alpha, causal=None)

    def test_arguments_by_name(self):
        x, weight, bias = norm_arguments()
        expected = ops.layer_norm(x, weight, bias, 1e-3)
        leaf = x.clone().requires_grad_()
        for values in (
            ((x,), {"weight": weight, "bias": bias, "eps": 1e-3}),
            ((), {"bias": bias, "eps": 1e-3, "x": x, "weight": weight}),
            ((leaf,), {"eps": 1e-3, "bias": bias, "weight": weight}),
            ((), {"x": leaf, "weight": weight, "bias": bias, "eps": 1e-3}),
        ):
            out = ops.layer_norm(*values[0], **values[1])
            self.assertTrue(torch.equal(out, expected))
            is_recorded = any(value is leaf for value in (*values[0], *values[1].values()))
            self.assertEqual(out.requires_grad, is_recorded)
            if is_recorded:
                (gradient,) = torch.autograd.grad(out.sum(), leaf)
                self.assertEqual(gradient.shape, x.shape)
        weight.requires_grad_()
        self.assertTrue(ops.layer_norm(x, weight=weight).requires_grad)  # only named
        with torch.no_grad():
            self.assertFalse(ops.layer_norm(leaf, weight, bias).requires_grad)
        with torch.inference_mode():
            self.assertFalse(ops.layer_norm(leaf, weight, bias).requires_grad)

    def test_what_the_schema_refuses_is_said_of_the_operator(self):
        x = norm_arguments()[0]
        for leaf in (x, x.clone().requires_grad_()):
            for call in (
                lambda leaf=leaf: ops.layer_norm(leaf, "weight"),
                lambda leaf=leaf: ops.layer_norm(leaf, epsilon=1.0),
                lambda leaf=leaf: ops.jagged_to_padded_dense(values=leaf, max_len=3),
            ):
                with self.assertRaisesRegex(RuntimeError, "hstujit::(layer_norm|jagged_to_padded_dense)"):
                    call()

    def test_an_error_names_what_is_wrong_where_gradients_are_recorded_and_in_backward(self):
        q, k, v, *rest = next(torch_cases.cases())[2]
        with self.assertRaisesRegex(errors.InvalidArgumentError, r"k.shape\[0\] is 8; it must be L = 7"):
            ops.hstu_attention(q[:7].requires_grad_(), k, v, *rest)
        x = norm_arguments()[0].requires_grad_()
        padded = ops.dense_to_jagged(x[:6], torch.tensor([0, 2, 3]), 3, out_rows=3)
        with self.assertRaisesRegex(RuntimeError, "shape"):
            padded.backward(torch.ones(2, 16))

    def test_memory_that_there_is_not_is_pytorchs_error(self):
        row = torch.zeros(1, 1024)
        with self.assertRaisesRegex(RuntimeError, "can't allocate memory") as raised:
            ops.layer_norm(row.expand(2**30, 1024))
        self.assertNotIsInstance(raised.exception, errors.Error)
        words = r"^layer_norm: out would have the shape \(4503599627370496, 1024\), which is larger than any memory$"
        with self.assertRaisesRegex(errors.InvalidArgumentError, words):
            ops.layer_norm(row.expand(2**52, 1024))
        self.assertEqual(ops.layer_norm(row).shape, row.shape)

    def test_operators_in_a_mode_refuse_with_their_own_sentence(self):
        q, k, v, *rest = next(torch_cases.cases())[2]
        with Seen(), self.assertRaisesRegex(errors.InvalidArgumentError, r"k.shape\[0\] is 8; it must be L = 7"):
            ops.hstu_attention(q[:7], k, v, *rest)

    def test_a_call_is_planned_anew_where_anything_that_it_follows_from_differs(self):
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        calls = [
            {},
            {"score": "gelu"},
            {"causal": False},
            {"max_attn_len": 2},
            {"num_targets": torch.tensor([1, 0, 2])},
            {"attn_scale": torch_cases.tensor(1, seed=6)},
            {"attn_scale": torch_cases.tensor(8, seed=6)},
            {"q": q.bfloat16(), "k": k.bfloat16(), "v": v.bfloat16()},
            {"seq_offsets": offsets.int()},
            {"q": q[:, :1], "k": k[:, :1], "v": v[:, :1]},
        ]
        named = {"q": q, "k": k, "v": v, "seq_offsets": offsets, "max_seq_len": length, "alpha": alpha}
        alone = []
        for changes in calls:
            hstujit.set_default_context(hstujit.default_context())  # forgets every plan
            alone.append(ops.hstu_attention(**{**named, **changes}))
        for _ in range(2):
            for changes, expected in zip(calls, alone):
                self.assertTrue(torch.equal(ops.hstu_attention(**{**named, **changes}), expected))
        for index, one in enumerate(alone):
            for other in alone[:index]:
                same = one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
                # fp32 offsets of another integer type, and an attention of fewer columns, give the same numbers.
                self.assertFalse(same and calls[index].keys() != {"seq_offsets"})


@unittest.skipUnless(torch, "PyTorch is not installed")
class Contexts(unittest.TestCase):
    def test_a_context_that_is_no_longer_used_is_given_back(self):
        before = hstujit.default_context()
        self.addCleanup(hstujit.set_default_context, before)
        context = hstujit.Context()
        gone = weakref.ref(context)
        hstujit.set_default_context(context)
        ops.complete_cumsum(torch.tensor([1, 2]))
        leaf = torch_cases.tensor(8, 16).requires_grad_()
        ops.jagged_to_padded_dense(leaf, torch_cases.offsets(), 4).sum().backward()  # of which forward has a plan
        hstujit.set_default_context(before)
        del context
        gc.collect()
        self.assertIsNone(gone())

    def test_threads_call_while_the_default_context_changes(self):
        before = hstujit.default_context()
        self.addCleanup(hstujit.set_default_context, before)
        x, weight, bias = norm_arguments()
        expected = ops.layer_norm(x, weight, bias)
        raised, count = [], [0]
        done = threading.Event()

        def work():
            try:
                while not done.is_set():
                    leaf = x.clone().requires_grad_()
                    out = ops.layer_norm(leaf, weight, bias)
                    assert torch.equal(out, expected)
                    out.sum().backward()
                    count[0] += 1
            except BaseException as error:
                raised.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while count[0] < 24 and not raised and time.monotonic() < deadline:
            hstujit.set_default_context(hstujit.Context())
            gc.collect()
        done.set()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertEqual(raised, [])
        self.assertGreaterEqual(count[0], 24)

    def test_the_gil_is_not_held_while_a_kernel_is_prepared(self):
        before, interval = hstujit.default_context(), sys.getswitchinterval()
        self.addCleanup(hstujit.set_default_context, before)
        self.addCleanup(sys.setswitchinterval, interval)
        counts, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counts[0] += 1
                done.wait(1e-4)

        hstujit.set_default_context(hstujit.Context())
        q, k, v, *rest = next(torch_cases.cases())[2]
        thread = threading.Thread(target=count)
        thread.start()
        sys.setswitchinterval(1000)  # a thread gets the GIL where another one gives it up, and not otherwise
        start = counts[0]
        for length in range(2, 8):
            ops.hstu_attention(q, k, v, *rest, max_attn_len=length)  # the host backend compiles
        found = counts[0] - start
        sys.setswitchinterval(interval)
        done.set()
        thread.join()
        self.assertGreater(found, 20)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Plans(unittest.TestCase):
    def test_each_is_made_once_and_forgotten_with_its_context(self):
        asked, x = [], norm_arguments()[0]
        library = _native.native_library()
        before = hstujit.default_context()
        self.addCleanup(hstujit.set_default_context, before)

        def counted():
            asked.append(hstujit.default_context())
            return asked[-1]

        with mock.patch.object(_native, "default_context", counted):
            for context in (hstujit.Context(), hstujit.Context()):
                hstujit.set_default_context(context)
                asked.clear()
                for _ in range(3):
                    ops.layer_norm(x)
                    ops.layer_norm(x[:, :8])
                self.assertEqual(asked, [context, context])
        self.assertIs(library.of_thread.context, context)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Memory(unittest.TestCase):
    def test_calls_and_errors_leave_no_tensor_behind(self):
        x, weight, bias = norm_arguments()
        offsets, wrong = torch_cases.offsets(), torch_cases.offsets().to(torch.int16)
        references = [weakref.ref(tensor) for tensor in (x, weight, bias, offsets)]
        for _ in range(10):
            ops.layer_norm(x, weight, bias)
            ops.jagged_to_padded_dense(x, offsets, 4, 1.5)
            with self.assertRaises(errors.Error):
                ops.jagged_to_padded_dense(x, wrong, 4, 1.5)
            with self.assertRaises(errors.Error):
                ops.jagged_to_padded_dense(x, offsets, -1)
        del x, weight, bias, offsets
        gc.collect()
        self.assertEqual([reference() for reference in references], [None] * 4)
