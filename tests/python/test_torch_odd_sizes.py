"""Kernels take what the package allocates: every output of every operator at odd sizes, in types of two and four bytes.

One checker of arguments serves the host backend and a GPU, so that what it takes here it takes there.
"""

import unittest

import numpy
from torch_support import torch

import hstujit

if torch:
    import odd_cases
    from torch_cases import FORWARD_ONLY

    import hstujit.torch

    ops = torch.ops.hstujit
    OF_TWO_BYTES = (torch.bfloat16, torch.float16)  # operators take turns: what is allocated follows from bytes
    DTYPES = (*OF_TWO_BYTES, torch.float32)


def tensors_of(value):
    values = (value,) if isinstance(value, torch.Tensor) else tuple(value)
    return [out for out in values if out.shape != (0,)]


def leaf(value):
    """The same memory, with the strides that it has, as a leaf of a new graph."""
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.detach().requires_grad_() if is_float else value


@unittest.skipUnless(torch, "PyTorch is not installed")
class OddSizes(unittest.TestCase):
    def test_every_operator_has_a_case(self):
        found = {op for op, _, _ in odd_cases.odd_cases(torch.float32)}
        self.assertEqual(found, set(hstujit._interface.operators()))

    def test_results_and_gradients_are_allocated_for_the_kernels(self):
        for dtype in DTYPES:
            for number, (op, arguments, keywords) in enumerate(odd_cases.odd_cases(dtype)):
                if dtype is OF_TWO_BYTES[number % 2]:
                    continue
                with self.subTest(op, dtype=dtype):
                    own = arguments if op in FORWARD_ONLY else [leaf(value) for value in arguments]
                    named = keywords if op in FORWARD_ONLY else {name: leaf(value) for name, value in keywords.items()}
                    outs = tensors_of(getattr(ops, op)(*own, **named))
                    leaves = [value for value in (*own, *named.values()) if getattr(value, "requires_grad", False)]
                    if not leaves:
                        continue
                    torch.autograd.backward([out.float().sum() for out in outs if out.requires_grad])
                    for value in leaves:
                        self.assertEqual(value.grad.shape, value.shape)

    def test_rows_of_the_gradient_of_a_bias(self):
        """Rows of a layer begin at multiples of 16 bytes; those of attention, which has kernels for all, are dense."""
        for dtype in (torch.bfloat16, torch.float32):
            of_16_bytes = 16 // dtype.itemsize
            for longest in (5, 8, 20):
                shape = (2, 1, longest, longest)
                for op, elements in (("stu_layer", of_16_bytes), ("hstu_attention", 1)):
                    rab = odd_cases.padded_rows(torch.ones(shape, dtype=dtype))
                    drab = self.gradient_of(op, rab, longest)
                    row = -(-longest // elements) * elements
                    self.assertEqual((drab.shape, drab.stride()[1:]), (shape, (longest * row, row, 1)), (op, dtype))

    def gradient_of(self, op, rab, longest):
        dtype = rab.dtype
        offsets = odd_cases.offsets(3, 2)
        if op == "hstu_attention":
            q = torch.ones(5, 1, 8, dtype=dtype)
            return ops.hstu_attention_backward(q, q, q, q, offsets, longest, 0.3, rab=rab)[3]
        x, v = torch.ones(5, 8, dtype=dtype), torch.ones(8)
        made = ops.stu_layer_backward(
            x, v, torch.ones(8, 32, dtype=dtype), torch.ones(24, 8, dtype=dtype), v, x, offsets, longest, 0.3,
            attn=x, rab=rab, input_norm_bias=v, output_norm_bias=v, heads=1, attn_dim=8, hidden_dim=8
        )  # fmt: skip
        return next(tensor for tensor in made if tensor.dim() == 4)

    def test_fake_tensors_have_the_strides_of_real_ones(self):
        rab = odd_cases.padded_rows(torch.ones(2, 1, 5, 5, dtype=torch.bfloat16))
        with torch._subclasses.FakeTensorMode() as mode:
            fake = self.gradient_of("stu_layer", mode.from_tensor(rab), 5)
        self.assertEqual(fake.stride(), self.gradient_of("stu_layer", rab, 5).stride())

    def test_functions_for_arrays_allocate_such_rows_too(self):
        rab = numpy.zeros((2, 1, 5, 8), numpy.float16)[..., :5]
        x, v, offsets = numpy.ones((5, 8), numpy.float16), numpy.ones(8, numpy.float32), numpy.array([0, 3, 5])
        projection, output = numpy.ones((8, 32), numpy.float16), numpy.ones((24, 8), numpy.float16)
        made = hstujit.stu_layer_backward(
            x, v, projection, output, v, x, offsets, 5, 0.3, attn=x, rab=rab, input_norm_bias=v, output_norm_bias=v,
            heads=1, attn_dim=8, hidden_dim=8
        )  # fmt: skip
        self.assertEqual(next(array for array in made if array.ndim == 4).strides[2], 16)


if __name__ == "__main__":
    unittest.main()
