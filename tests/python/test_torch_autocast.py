"""Effects of autocast on each operator."""

import pathlib
import re
import unittest

from torch_support import torch

from hstujit import _interface

if torch:
    import torch_cases

    import hstujit.torch
    from hstujit.torch import functional_layer, generative_recommenders

    ops = torch.ops.hstujit


@unittest.skipUnless(torch, "PyTorch is not installed")
class Rule(unittest.TestCase):
    def test_what_has_products_follows_autocast_and_nothing_else_does(self):
        """Operators that have products have a parameter precision, or no fp32 at all."""
        lowered, kept = set(), set()
        for _, op, arguments, keywords in torch_cases.cases():
            described = _interface.interface(op, "forward")
            wide = {name: value.float() if is_16_bits(value) else value for name, value in keywords.items()}
            with torch.autocast("cpu", torch.bfloat16):
                out = getattr(ops, op)(*(value.float() if is_16_bits(value) else value for value in arguments), **wide)
            out = out if isinstance(out, torch.Tensor) else next(t for t in out if t.numel())
            if out.is_floating_point():
                (lowered if out.dtype == torch.bfloat16 else kept).add(described.op)
        self.assertEqual(lowered & kept, set())
        self.assertEqual(lowered, set(self.documented()))

    def documented(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "pytorch.md").read_text()
        listed = re.search(r"products compute in the data type of autocast: (.*?)\.\s", page, re.S)
        return re.findall(r"`(\w+)`", listed[1])


def is_16_bits(value):
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Training(unittest.TestCase):
    """The two halves of a layer, one after the other, with fp32 parameters and rows."""

    def setUp(self):
        self.x = torch_cases.tensor(8, 16)
        self.norms = torch_cases.tensor(16, seed=1), torch_cases.tensor(16, seed=2)
        self.uvqk, self.bias = 0.25 * torch_cases.tensor(16, 96, seed=3), torch_cases.tensor(96, seed=4)
        self.output = 0.25 * torch_cases.tensor(48, 16, seed=5)
        self.leaves = [t.requires_grad_() for t in (self.x, *self.norms, self.uvqk, self.bias, self.output)]

    def gradients(self, out):
        self.assertEqual(out.dtype, torch.bfloat16)
        found = torch.autograd.grad(out.float().square().sum(), self.leaves)
        self.assertEqual({gradient.dtype for gradient in found}, {torch.float32})
        return found

    def agree(self, found, expected):
        for one, other in zip(found, expected):
            self.assertLess((one - other).norm() / other.norm(), 0.05)

    def test_of_operators_and_of_functions(self):
        heads = {"heads": 2, "hidden_dim": 8}
        with torch.autocast("cpu", torch.bfloat16):
            _, _, u, attn = ops.hstu_preprocess_and_attention(
                self.x, self.norms[0], self.uvqk, torch_cases.offsets(), 8, 0.25, self.norms[1], self.bias,
                attn_dim=16, **heads
            )  # fmt: skip
            _, out = ops.hstu_compute_output(
                attn.flatten(1), u, self.x, self.norms[0], self.output, self.norms[1], **heads
            )
            u, attn, _, _ = functional_layer.hstu_preprocess_and_attention(
                self.x, *self.norms, 1e-5, 2, 16, 8, self.uvqk, self.bias, 8, torch_cases.offsets(), 0.25, True, None,
                0, 0, True, True, True
            )  # fmt: skip
            other = generative_recommenders.hstu_compute_output(
                attn, u, self.x, *self.norms, 1e-5, self.output, 2, 8, 0.0, True, True, True, "none", False, True
            )
        found = self.gradients(out)
        self.agree(found, self.gradients(other))
        self.agree(found, self.expected())

    def expected(self):
        norm, silu = torch.nn.functional.layer_norm, torch.nn.functional.silu
        u, v, q, k = (norm(self.x, (16,), *self.norms) @ self.uvqk + self.bias).split([16, 16, 32, 32], 1)
        u, offsets = silu(u), torch_cases.OFFSETS
        q, k, v = (t.unflatten(1, (2, -1)) for t in (q, k, v))
        parts = []
        for begin, end in zip(offsets, offsets[1:]):
            scores = silu(0.25 * torch.einsum("ihd,jhd->hij", q[begin:end], k[begin:end])) / 8
            parts.append(torch.einsum("hij,jhd->ihd", scores.tril(), v[begin:end]).flatten(1))
        attn = torch.cat(parts)
        y = torch.cat([u, attn, u * norm(attn, (16,), *self.norms)], 1)
        return torch.autograd.grad((self.x + y @ self.output).square().sum(), self.leaves)

    def test_of_a_product(self):
        with torch.autocast("cpu", torch.bfloat16):
            out = ops.addmm(self.x, self.uvqk, 1.0, self.bias, 1.0)
            other = hstujit.torch.addmm(self.bias, self.x.bfloat16(), self.uvqk)
        self.assertEqual((out.dtype, other.dtype), (torch.bfloat16, torch.bfloat16))
        used = (self.x, self.uvqk, self.bias)
        found = torch.autograd.grad(out.float().square().sum(), used)
        self.agree(found, torch.autograd.grad((self.x @ self.uvqk + self.bias).square().sum(), used))
