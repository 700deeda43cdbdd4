"""Attention of the last rows: its derivative in PyTorch against formulas in float64, and against that of all rows."""

import unittest

import formulas
from torch_support import JaggedAttention, torch

if torch:
    import hstujit.torch
    from hstujit.torch import _public

    ops = torch.ops.hstujit


@unittest.skipUnless(torch, "PyTorch is not installed")
class LastRows(JaggedAttention):
    def asked(self, rows):
        """The numbers of those rows of the batch, and where the sequences' begin among them."""
        ends = self.offsets[1:].tolist()
        numbers = [row for end, count in zip(ends, rows) for row in range(end - count, end)]
        return torch.tensor(numbers, dtype=torch.int64), torch.tensor([0, *rows]).cumsum(0)

    def compare(self, rows, jagged, **tensors):
        """All gradients, with float64. Numbers of heads and texts are keywords; tensors of floats have gradients."""
        numbers, queries = self.asked(rows)
        q, k, v = self.qkv
        leaves = [q[numbers].detach().requires_grad_(), k, v]
        named = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
        says = {name: value for name, value in tensors.items() if name not in named}
        floats = [name for name, value in named.items() if value.is_floating_point()]
        leaves += [named[name].requires_grad_() for name in floats]
        exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
        if jagged:
            named["seq_offsets_q"] = queries
        found = ops.delta_hstu_attention(
            *leaves[:3], self.offsets, self.longest, max(rows), 0.25, **named, **says, precision="ieee"
        )
        wanted = formulas.attention(
            *exact[:3], self.offsets, self.longest, 0.25, query_offsets=queries,
            **{name: exact[3 + floats.index(name)] if name in floats else value
               for name, value in tensors.items()},
        )  # fmt: skip
        dout = self.dout[: len(numbers)]
        self.assertLess((found.double() - wanted).norm() / wanted.norm(), 1e-5)
        gradients = torch.autograd.grad(found, leaves, dout), torch.autograd.grad(wanted, exact, dout.double())
        for name, own, other in zip(("q", "k", "v", *floats), *gradients, strict=True):
            self.assertEqual(own.shape, other.shape, name)
            self.assertLess((own.double() - other).norm() / other.norm(), 2e-5, name)

    def test_all_gradients_are_those_of_the_formula(self):
        targets = torch.tensor([4, 0, 7, 0])
        for rows in ([3, 0, 17, 1], [0, 0, 33, 1], self.lengths):
            self.compare(rows, True)
            self.compare(rows, True, num_targets=targets, num_softmax_heads=1)
            self.compare(rows, True, attn_scale=torch.rand(sum(rows)), rab=torch.randn(4, 1, 64, 64))
            self.compare(rows, True, attn_scale=torch.rand(1), rab=torch.randn(4, 2, 64, 64), causal=False)

    def test_as_many_rows_of_each_sequence(self):
        self.offsets, self.lengths = torch.tensor([0, 40, 100, 101]), [40, 60, 1]
        self.compare([1, 1, 1], False, num_targets=torch.tensor([4, 7, 0]), score="relu2")
        self.compare([1, 1, 1], False, attn_scale=torch.rand(3), rab=torch.randn(3, 2, 64, 64), num_softmax_heads=1)

    def test_a_gradient_that_nobody_wants_is_not_computed(self):
        numbers, queries = self.asked([3, 0, 17, 1])
        q, k, v = (tensor.detach() for tensor in self.qkv)
        rab = torch.randn(4, 1, 64, 64)
        out = ops.delta_hstu_attention(
            q[numbers], k.requires_grad_(), v, self.offsets, self.longest, 17, 0.25, rab=rab, seq_offsets_q=queries
        )
        (dk,) = torch.autograd.grad(out, k, self.dout[: len(numbers)])
        self.assertEqual(dk.shape, k.shape)

    def test_the_function_is_as_attention_of_all_rows(self):
        """A table that the score reads has a gradient, too, and so have rows."""
        self.offsets = torch.tensor([0, 40, 100])
        q, k, v = (tensor.detach()[:100] for tensor in self.qkv)
        table, rows = torch.randn(129, 2), torch.randn(100)
        says = {"score": "silu(x * (1 + r[row] * r[col]) + w[row - col + 64])",
                "operands": "w: table(129, heads), r: row", "precision": "ieee"}  # fmt: skip
        asked = torch.tensor([38, 39, 98, 99])
        results = []
        for whole in (True, False):
            leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v, table, rows)]
            own, sequences = {**says, "operand_tensors": leaves[3:]}, (self.offsets, self.longest)
            if whole:
                out = ops.hstu_attention(*leaves[:3], *sequences, 0.25, **own)[asked]
            else:
                out = ops.delta_hstu_attention(leaves[0][asked], *leaves[1:3], *sequences, 2, 0.25, **own)
            results.append((out, *torch.autograd.grad(out, leaves, self.dout[:4])))
        for one, other in zip(*results, strict=True):
            self.assertLess((one - other).norm() / other.norm(), 1e-5)
        leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
        last = hstujit.torch.delta_hstu_mha(self.longest, 0.25, leaves[0][asked], *leaves[1:], self.offsets)
        every = hstujit.torch.hstu_mha(self.longest, 0.25, *leaves, self.offsets)[asked]
        for one, other in zip(*(torch.autograd.grad(out, leaves, self.dout[:4]) for out in (last, every))):
            self.assertLess((one - other).norm() / other.norm(), 2e-3)

    def test_a_patched_package_calls_it_where_a_gradient_is_needed(self):
        for modules in _public.PACKAGES.values():
            substitute = modules["ops.hstu_attention"]["delta_hstu_mha"]
            self.assertEqual(substitute.refuses(dict(zip(("delta_q", "k", "v"), self.qkv))), "")

    def test_rows_before_a_sequence_have_gradients_of_zero(self):
        q = torch.randn(6, 2, 16, requires_grad=True)
        k, v = (torch.randn(4, 2, 16, requires_grad=True) for _ in range(2))
        out = ops.delta_hstu_attention(q, k, v, torch.tensor([0, 1, 4]), 8, 3, 0.25)
        dq, dk, dv = torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
        self.assertEqual(dq[:2].abs().max().item(), 0)
        self.assertTrue(all(gradient[2:].abs().max() > 0 for gradient in (dq, dk, dv)))

    def test_a_compiled_graph_has_it(self):
        q, k, v = self.qkv
        asked, queries = self.asked([3, 0, 17, 1])

        def attend(q, k, v):
            return ops.delta_hstu_attention(
                q[asked], k, v, self.offsets, self.longest, 17, 0.25, seq_offsets_q=queries
            ).square()

        results = []
        for function in (attend, torch.compile(attend, backend="aot_eager", fullgraph=True)):
            results.append(torch.autograd.grad(function(q, k, v).sum(), (q, k, v)))
        for one, other in zip(*results, strict=True):
            self.assertTrue(torch.allclose(one, other))


if __name__ == "__main__":
    unittest.main()
