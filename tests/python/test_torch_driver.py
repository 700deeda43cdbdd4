"""The way of a call to a CUDA launch, without a GPU: tensors of the CPU are taken for those of one, and a driver that
computes nothing takes the launches. HSTUJIT_FAKE_CUDA names that driver (tests/fakes/fake_cuda.h), HSTUJIT_FAKE_TORCH
the functions that stand in place of PyTorch's (tests/fakes/fake_torch.cpp).
"""

import contextlib
import ctypes
import json
import os
import re
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

from torch_support import torch

import hstujit
from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch  # noqa: F811
    from hstujit.torch import _native

    ops = torch.ops.hstujit

DRIVER = os.environ.get("HSTUJIT_FAKE_CUDA")
FUNCTIONS = os.environ.get("HSTUJIT_FAKE_TORCH")


class Fakes:
    """PyTorch's functions are replaced in the library. A thread of each test has launched nothing yet."""

    class Fake(ctypes.Structure):
        _fields_ = [
            ("current", ctypes.c_int32),
            ("guards", ctypes.c_int32),
            ("streams_asked", ctypes.c_int32),
            ("workspace_count", ctypes.c_int32),
            ("workspace_bytes", ctypes.c_int64),
            ("stream", ctypes.c_void_p),
            ("capturing", ctypes.c_int32),
        ]

    def __init__(self, test):
        functions = ctypes.CDLL(FUNCTIONS)
        find = _native.native_library().library.hstujit_torch_functions
        find.restype = ctypes.c_void_p
        used = ctypes.c_void_p(find())
        functions.fake_torch_install(used)
        test.addCleanup(functions.fake_torch_remove, used)
        functions.fake_torch.restype = ctypes.POINTER(self.Fake)
        object.__setattr__(self, "fake", functions.fake_torch().contents)

    def __setattr__(self, name, value):
        setattr(self.fake, name, value)

    @property
    def entered(self):
        return [0] * self.fake.guards

    @property
    def workspaces(self):
        return [self.fake.workspace_bytes] * self.fake.workspace_count


@unittest.skipUnless(
    torch and DRIVER and FUNCTIONS,
    "PyTorch is not installed, or HSTUJIT_FAKE_CUDA or HSTUJIT_FAKE_TORCH names no library",
)
class Launches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The context outlives the class, in plans that the cycle collector has not seen yet, and may write meanwhile.
        scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(scratch.cleanup)
        cls.addClassCleanup(hstujit.set_default_context, hstujit.default_context())
        with mock.patch.dict(os.environ, HSTUJIT_CUDA_DRIVER=DRIVER):
            hstujit.set_default_context(hstujit.Context(cache_dir=scratch.name))
        cls.driver = ctypes.CDLL(DRIVER)
        cls.driver.fake_cuda_stream.restype = ctypes.c_void_p

    def setUp(self):
        self.way = Fakes(self)

    def run(self, result=None):
        """In a thread of its own, which has launched nothing."""
        thread = threading.Thread(target=super().run, args=(result,))
        thread.start()
        thread.join()
        return result

    @contextlib.contextmanager
    def current(self):
        """A context of the driver for this thread, as PyTorch makes one."""
        context = ctypes.c_void_p()
        self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.driver.cuCtxPushCurrent_v2(context)
        yield
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(context))

    def arguments(self):
        q, k, v = (torch_cases.tensor(8, 2, 64, seed=seed).bfloat16() for seed in range(3))
        return [q, k, v, torch_cases.offsets(), 64, 0.125]

    def test_forward_and_backward_are_launched(self):
        with self.current():
            q, *rest = self.arguments()
            counts = [self.driver.fake_cuda_launches()]
            out = ops.hstu_attention(q.requires_grad_(), *rest)
            counts.append(self.driver.fake_cuda_launches())
            out.sum().backward()
            counts.append(self.driver.fake_cuda_launches())
        self.assertEqual((out.shape, q.grad.shape), ((8, 2, 64), (8, 2, 64)))
        self.assertLess(counts[0], counts[1])
        self.assertLess(counts[1], counts[2])

    def test_backward_is_compiled_beside_the_forward_of_a_call_that_autograd_records(self):
        def compiled_by(heads, wanted, recorded):
            q, k, v = (torch_cases.tensor(8, heads, 64, seed=seed).bfloat16() for seed in range(3))
            before = context.stats()["kernels"]["compiled"]
            ops.hstu_attention(q.requires_grad_(recorded), k, v, torch_cases.offsets(), 64, 0.125)
            deadline = time.monotonic() + 60
            while context.stats()["kernels"]["compiled"] - before < wanted and time.monotonic() < deadline:
                time.sleep(0.05)
            return context.stats()["kernels"]["compiled"] - before

        context = hstujit.default_context()
        with self.current():
            forward = compiled_by(3, 0, False)
            self.assertGreater(compiled_by(5, forward + 1, True), forward)

    def test_the_device_is_entered_once_in_a_thread_and_where_another_one_is_current(self):
        with self.current():
            arguments = self.arguments()
            for _ in range(3):
                ops.hstu_attention(*arguments)
            self.assertEqual(self.way.entered, [0])
            self.way.current = 1
            ops.hstu_attention(*arguments)
            self.assertEqual(self.way.entered, [0, 0])

    def test_launches_are_on_the_current_stream(self):
        with self.current():
            self.way.stream = 0x1230
            ops.layer_norm(torch_cases.tensor(4, 64))
            self.assertEqual(self.driver.fake_cuda_stream(), 0x1230)

    def test_a_new_length_in_a_capture_is_refused_and_a_known_one_is_not(self):
        with self.current():
            *tensors, _, alpha = self.arguments()
            ops.hstu_attention(*tensors, 64, alpha)
            self.way.capturing = 1
            ops.hstu_attention(*tensors, 64, alpha)
            with self.assertRaisesRegex(errors.NotPreparedError, "max_seq_len is 5000.*capture of a CUDA graph"):
                ops.hstu_attention(*tensors, 5000, alpha)

    @contextlib.contextmanager
    def kernels(self, **variables):
        """The lines of the log about kernels that are chosen, of a context under these variables."""
        before, lines = hstujit.default_context(), []
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            with mock.patch.dict(os.environ, HSTUJIT_CUDA_DRIVER=DRIVER, **variables):
                context = hstujit.Context(cache_dir=cache, log=lambda _, line: lines.append(line))
            hstujit.set_default_context(context)
            try:
                yield lines
            finally:
                torch.use_deterministic_algorithms(False)
                hstujit.set_default_context(before)

    def gradients_of_a_table(self):
        x, table = torch_cases.tensor(8, 64), torch_cases.tensor(2048, 64)
        ops.add_positional_embeddings(x, table.requires_grad_(), 1.0, torch_cases.offsets()).sum().backward()

    def chosen(self, lines):
        """The kernels of backward that were chosen since, also while forward was compiled."""
        found = re.findall(r'miss,op=\w+,direction=backward,.*config="(\w+)', "\n".join(lines))
        lines.clear()
        return sorted({*found})

    def test_deterministic_kernels_are_launched_where_pytorch_asks_for_them(self):
        with self.current(), self.kernels() as lines:
            self.gradients_of_a_table()
            self.assertEqual(self.chosen(lines), ["table_backward_atomic"])
            torch.use_deterministic_algorithms(True)
            self.gradients_of_a_table()
            self.assertEqual(self.chosen(lines), ["table_backward"])
            for is_set in (False, True):
                torch.use_deterministic_algorithms(is_set)
                self.gradients_of_a_table()
                self.assertEqual(self.chosen(lines), [])

    def test_backward_follows_the_flag_of_its_own_time(self):
        with self.current(), self.kernels() as lines:
            x, table = torch_cases.tensor(8, 64), torch_cases.tensor(2048, 64).requires_grad_()
            out = ops.add_positional_embeddings(x, table, 1.0, torch_cases.offsets())
            torch.use_deterministic_algorithms(True)
            out.sum().backward()
            self.assertIn("table_backward", self.chosen(lines))

    def test_the_flag_counts_through_the_dispatcher_and_in_a_graph(self):
        call = ops.add_positional_embeddings_backward
        arguments = torch_cases.tensor(8, 64), 1.0, torch_cases.offsets()
        compiled = torch.compile(call, backend="eager", fullgraph=True)
        for way in (call._op, compiled):
            for is_set, expected in ((False, "table_backward_atomic"), (True, "table_backward")):
                with self.current(), self.kernels() as lines:
                    torch.use_deterministic_algorithms(is_set)
                    way(*arguments, dposition_embeddings_weight_rows=2048)
                    self.assertEqual(self.chosen(lines), [expected])

    def test_a_prescribed_kernel_that_is_not_deterministic(self):
        """Is refused in PyTorch's words, and launched with a warning where PyTorch is only to warn."""
        config = {"skeleton": "row/table_backward_atomic", "threads_per_row": 16, "warps": 1, "stages": 1}
        config |= {"blocks_per_sm": 6, "activation": "accurate", "schedule": "persistent", "lanes_arrive": False}
        override = {"HSTUJIT_OVERRIDE": json.dumps(config)}
        x, offsets, rows = torch_cases.tensor(8, 64), torch_cases.offsets(), 2048

        def call():
            ops.add_positional_embeddings_backward(x, 1.0, offsets, dposition_embeddings_weight_rows=rows)

        with self.current(), self.kernels(**override) as lines:
            torch.use_deterministic_algorithms(True)
            with self.assertRaisesRegex(
                errors.UnsupportedError,
                "^hstujit::add_positional_embeddings_backward does not have a deterministic implementation, but you "
                r"set 'torch.use_deterministic_algorithms\(True\)' .*deterministic ones are asked for",
            ):
                call()
            self.chosen(lines)
            torch.use_deterministic_algorithms(True, warn_only=True)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
                call()
            self.assertEqual(self.chosen(lines), ["table_backward_atomic"])
            (warning,) = caught  # one for each plan
            self.assertRegex(
                str(warning.message), "^hstujit::add_positional_embeddings_backward does not have a determ"
            )

    def test_workspaces_are_borrowed_from_pytorch(self):
        with self.current():
            x, weight = torch_cases.tensor(4096, 64), torch.ones(64)
            ops.layer_norm_backward(x, x, weight=weight)
        (size,) = self.way.workspaces
        self.assertGreater(size, 0)
