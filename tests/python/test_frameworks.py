"""Arrays of other frameworks than numpy: results are of the framework of the first array."""

import importlib.util
import unittest

import numpy
from support import OFFSETS, ROWS, random
from torch_support import torch

import hstujit
from hstujit import errors

if importlib.util.find_spec("jax"):
    import jax
else:
    jax = None


class Frameworks(unittest.TestCase):
    def setUp(self):
        self.arrays = [random(ROWS, 2, 64), random(ROWS, 2, 64, seed=1), random(ROWS, 2, 32, seed=2)]
        self.expected = hstujit.attention(*self.arrays, OFFSETS, 8, 0.125)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_torch(self):
        q, k, v = map(torch.from_numpy, self.arrays)
        out = hstujit.attention(q, k, v, torch.from_numpy(OFFSETS), 8, 0.125)
        numpy.testing.assert_array_equal(out.numpy(), self.expected)
        self.assertEqual(hstujit.layer_norm(q[:, 0].bfloat16()).dtype, torch.bfloat16)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_tensors_that_require_a_gradient(self):
        """Where PyTorch records none, they are arrays like others. Elsewhere one would be lost without a word."""
        q, k, v = map(torch.from_numpy, self.arrays)
        offsets, out = torch.from_numpy(OFFSETS), torch.nn.Parameter(torch.empty(v.shape))
        wrong = "^q requires a gradient.*; call torch.ops.hstujit.hstu_attention, .*, or this in torch.no_grad"
        with self.assertRaisesRegex(errors.InvalidArgumentError, wrong):
            hstujit.attention(torch.nn.Parameter(q), k, v, offsets, 8, 0.125)
        with self.assertRaisesRegex(errors.InvalidArgumentError, r"^out\[0\] requires a gradient"):
            hstujit.attention(q, k, v, offsets, 8, 0.125, out=out)
        norm = torch.nn.LayerNorm(64)
        op = hstujit.Op({"op": "layer_norm", "width": 64, "dtype": "fp32", "weight_dtype": "fp32"}, backend="host")
        op.prepare()
        normed = torch.empty(ROWS, 64)
        given = {"x": q[:, 0], "weight": norm.weight, "bias": norm.bias, "eps": 1e-5, "out": normed}
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^weight requires.*; call it in torch.no_grad"):
            op.launch(**given)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^weight requires.*; call it in torch.no_grad"):
            hstujit.layer_norm_backward(normed, q[:, 0], weight=norm.weight)  # no second derivative
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                found = hstujit.attention(torch.nn.Parameter(q), k, v, offsets, 8, 0.125, out=out)
                numpy.testing.assert_array_equal(found.detach().numpy(), self.expected)
                op.launch(**given)
                torch.testing.assert_close(normed, norm(q[:, 0]))

    def test_a_subclass_is_of_the_framework_it_derives_from(self):
        class Array(numpy.ndarray):
            pass

        x = self.arrays[0][:, 0]
        expected = hstujit.silu(x)
        self.assertIs(type(hstujit.silu(x.view(Array))), numpy.ndarray)
        numpy.testing.assert_array_equal(hstujit.silu(x.view(Array)), expected)
        if torch:

            class Tensor(torch.Tensor):
                pass

            out = hstujit.silu(torch.from_numpy(x).as_subclass(Tensor))
            self.assertIsInstance(out, torch.Tensor)
            numpy.testing.assert_array_equal(out.numpy(), expected)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_views_of_torch_whose_memory_holds_something_else(self):
        x = torch.from_numpy(self.arrays[0][:, 0])
        pairs = torch.complex(torch.zeros(ROWS, 1), x[:, :1])
        for view in (torch._neg_view(x), pairs.conj().imag):
            self.assertTrue(view.is_neg())
            with self.assertRaisesRegex(
                errors.InvalidArgumentError, "^x has the negative bit of PyTorch; it must have"
            ):
                hstujit.silu(view)
            with self.assertRaisesRegex(errors.InvalidArgumentError, "^out.0. has the negative bit of PyTorch"):
                hstujit.silu(x, out=view)
            torch.testing.assert_close(hstujit.silu(view.resolve_neg()), torch.nn.functional.silu(view.resolve_neg()))
        with self.assertRaisesRegex(errors.InvalidArgumentError, "x cannot be exchanged by DLPack: .*conj"):
            hstujit.silu(pairs.conj())

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_frameworks_may_be_mixed(self):
        q, k, v = self.arrays
        out = hstujit.attention(q, torch.from_numpy(k), v, torch.from_numpy(OFFSETS), 8, 0.125)
        self.assertIsInstance(out, numpy.ndarray)
        numpy.testing.assert_array_equal(out, self.expected)

    @unittest.skipUnless(jax, "JAX is not installed")
    def test_jax(self):
        q, k, v = map(jax.numpy.asarray, self.arrays)
        offsets = jax.numpy.asarray(OFFSETS.astype(numpy.int32))
        outs = [hstujit.attention(q, k, v, offsets, 8, 0.125) for _ in range(2)]
        self.assertIsInstance(outs[0], jax.Array)
        for out in outs:
            numpy.testing.assert_array_equal(numpy.asarray(out), self.expected)
        half = hstujit.layer_norm(q[:, 0].astype(jax.numpy.bfloat16))
        self.assertEqual(half.dtype, jax.numpy.bfloat16)
        self.assertEqual(float(jax.numpy.abs(half.astype(jax.numpy.float32).mean(1)).max() < 0.02), 1.0)
