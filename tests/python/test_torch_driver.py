"""The way of a call to a CUDA launch, without a GPU: tensors of the CPU are taken for those of one, and a driver that
computes nothing takes the launches. HSTUJIT_FAKE_CUDA names that driver (tests/fakes/fake_cuda.h).
"""

import contextlib
import ctypes
import os
import tempfile
import threading
import unittest
from unittest import mock

from torch_support import torch

import hstujit
from hstujit import errors

if torch:
    import torch_cases

    from hstujit.torch import _launch

    ops = torch.ops.hstujit

DRIVER = os.environ.get("HSTUJIT_FAKE_CUDA")


@unittest.skipUnless(torch and DRIVER, "PyTorch is not installed, or HSTUJIT_FAKE_CUDA names no driver")
class Launches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.addClassCleanup(hstujit.set_default_context, hstujit.default_context())
        with mock.patch.dict(os.environ, HSTUJIT_CUDA_DRIVER=DRIVER):
            hstujit.set_default_context(hstujit.Context(cache_dir=scratch.name))
        cls.driver = ctypes.CDLL(DRIVER)

    def setUp(self):
        self.capturing, self.entered, self.launches = False, [], []
        self.make_current()
        launch = _launch.launch_values

        def record(handle, values, count, workspace, workspace_bytes, stream):
            self.launches.append((count, workspace_bytes, stream))
            return launch(handle, values, count, workspace, workspace_bytes, stream)

        @contextlib.contextmanager
        def device(index):
            self.entered.append(index)
            yield

        for target, name, value in (
            (torch.Tensor, "get_device", lambda tensor: 0),
            (torch.cuda, "device", device),
            (torch.cuda, "set_device", lambda index: None),
            (torch.cuda, "is_current_stream_capturing", lambda: self.capturing),
            (_launch, "_current_stream", lambda index: 0),
            (_launch, "_current_device", lambda: 0),
            (_launch, "_seen", threading.local()),
            (_launch, "launch_values", record),
        ):
            patch = mock.patch.object(target, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def make_current(self):
        """A context of the driver for this thread, as PyTorch makes one."""
        context = ctypes.c_void_p()
        self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.driver.cuCtxPushCurrent_v2(context)
        self.addCleanup(self.driver.cuCtxPopCurrent_v2, ctypes.byref(context))

    def arguments(self):
        q, k, v = (torch_cases.tensor(8, 2, 64, seed=seed).bfloat16() for seed in range(3))
        return [q, k, v, torch_cases.offsets(), 64, 0.125]

    def test_forward_and_backward_are_launched(self):
        q, *rest = self.arguments()
        out = ops.hstu_attention(q.requires_grad_(), *rest)
        out.sum().backward()
        self.assertEqual((out.shape, q.grad.shape), ((8, 2, 64), (8, 2, 64)))
        self.assertEqual([count for count, _, _ in self.launches], [8, 11])

    def test_the_device_is_entered_once_in_a_thread_and_where_another_one_is_current(self):
        arguments = self.arguments()
        for _ in range(3):
            ops.hstu_attention(*arguments)
        self.assertEqual(self.entered, [0])
        with mock.patch.object(_launch, "_current_device", lambda: 1):
            ops.hstu_attention(*arguments)
        self.assertEqual(self.entered, [0, 0])

    def test_launches_are_on_the_current_stream(self):
        with mock.patch.object(_launch, "_current_stream", lambda index: 0x1230 + index):
            ops.layer_norm(torch_cases.tensor(4, 64))
        self.assertEqual(self.launches[-1][2], 0x1230)

    def test_a_new_length_in_a_capture_is_refused_and_a_known_one_is_not(self):
        *tensors, _, alpha = self.arguments()
        ops.hstu_attention(*tensors, 64, alpha)
        self.capturing = True
        ops.hstu_attention(*tensors, 64, alpha)
        with self.assertRaisesRegex(errors.NotPreparedError, "max_seq_len is 5000.*capture of a CUDA graph"):
            ops.hstu_attention(*tensors, 5000, alpha)

    def test_workspaces_are_borrowed_from_pytorch(self):
        x, weight = torch_cases.tensor(4096, 64), torch.ones(64)
        made, empty = [], torch.empty

        def on_the_cpu(size, *, dtype, device):
            made.append((size, device.type))
            memory = empty(size + 256, dtype=dtype)
            return memory[-memory.data_ptr() % 256 :]

        with mock.patch.object(torch, "empty", on_the_cpu):
            ops.layer_norm_backward(x, x, weight)
        self.assertEqual(len(made), 1)
        self.assertEqual((self.launches[-1][1], "cuda"), made[0])
        self.assertGreater(made[0][0], 0)
