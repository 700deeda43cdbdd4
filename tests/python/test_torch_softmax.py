"""Heads with softmax: functions and layers of PyTorch against softmax of PyTorch in float64."""

import unittest

import formulas
from torch_support import JaggedAttention, torch

if torch:
    import torch_cases

    import hstujit.errors
    import hstujit.torch
    from hstujit.torch import STULayer, STULayerConfig


@unittest.skipUnless(torch, "PyTorch is not installed")
class SoftmaxHeads(JaggedAttention):
    def formula(self, heads, **keywords):
        return lambda q, k, v: formulas.attention(
            q, k, v, self.offsets, self.longest, 0.25, num_softmax_heads=heads, **keywords
        )

    def test_functions_have_them(self):
        targets = torch.tensor([4, 0, 7, 0])
        for heads in (1, 2):
            found = hstujit.torch.hstu_mha(
                self.longest, 0.25, *self.qkv, self.offsets, num_targets=targets, num_softmax_heads=heads
            )
            self.check(found, self.formula(heads, num_targets=targets))
        found = hstujit.torch.attention(
            *self.qkv, self.offsets, self.longest, score="relu(x) * relu(x)", num_softmax_heads=1
        )
        self.check(found, self.formula(1, score="relu2"))

    def test_of_the_last_rows(self):
        q, k, v = (tensor.detach() for tensor in self.qkv)
        offsets, queries = torch.tensor([0, 40, 100, 101]), torch.tensor([0, 1, 2, 3])
        delta = q[[39, 99, 100]]
        found = hstujit.torch.delta_hstu_mha(self.longest, 0.25, delta, k, v, offsets, num_softmax_heads=1)
        wanted = formulas.attention(
            delta, k, v, offsets, self.longest, 0.25, query_offsets=queries, num_softmax_heads=1
        )
        self.assertTrue(torch.allclose(found, wanted, atol=1e-3))

    def test_all_heads_are_scaled_dot_product_attention(self):
        found = hstujit.torch.hstu_mha(self.longest, 0.25, *self.qkv, self.offsets, num_softmax_heads=2)
        for begin, end in ((0, 40), (40, 100), (100, 101)):
            rows = [tensor[begin:end].transpose(0, 1) for tensor in self.qkv]
            wanted = torch.nn.functional.scaled_dot_product_attention(*rows, is_causal=True, scale=0.25)
            self.assertTrue(torch.allclose(found[begin:end], wanted.transpose(0, 1), atol=2e-3))

    def test_a_graph_has_them(self):
        def attend(q, k, v):
            return hstujit.torch.hstu_mha(self.longest, 0.25, q, k, v, self.offsets, num_softmax_heads=1)

        self.check(torch.compile(attend, backend="aot_eager", fullgraph=True)(*self.qkv), self.formula(1))

    def test_layers_have_them(self):
        x, lengths = torch_cases.tensor(torch_cases.ROWS, 32, seed=50), torch.tensor([3, 0, 5])
        outs = []
        for heads in (0, 1, 2):
            torch.manual_seed(1)
            layer = STULayer(STULayerConfig(32, 2, 16, 8, num_softmax_heads=heads)).eval()
            outs.append(layer(x, lengths, torch_cases.offsets(), 8))
            outs[-1].sum().backward()
            self.assertTrue(all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters()))
        for one, other in ((0, 1), (1, 2)):
            self.assertFalse(torch.allclose(outs[one], outs[other], atol=1e-4))

    def test_mistakes_name_the_argument(self):
        with self.assertRaisesRegex(hstujit.errors.InvalidConfigError, "num_softmax_heads is 3, but heads is 2"):
            hstujit.torch.hstu_mha(self.longest, 0.25, *self.qkv, self.offsets, num_softmax_heads=3)
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "num_softmax_heads is 3, but num_heads is 2"):
            STULayerConfig(32, 2, 16, 8, num_softmax_heads=3)
        for heads, sentence in (
            (0, 'softmax_score is "x / 2", but no head has softmax'),
            (1, "neither the score nor the mask reads unread"),
        ):
            with self.assertRaisesRegex(hstujit.errors.InvalidConfigError, sentence):
                torch.ops.hstujit.hstu_attention(
                    *self.qkv, self.offsets, self.longest, 0.25, softmax_score="x / 2", num_softmax_heads=heads,
                    **({"operands": "unread: row", "operand_tensors": [torch.zeros(101)]} if heads else {}),
                )  # fmt: skip


def alibi(x, b, h, row, col, slopes):
    return x - slopes[h] * (row - col)


@unittest.skipUnless(torch, "PyTorch is not installed")
class SoftmaxScores(JaggedAttention):
    def setUp(self):
        super().setUp()
        self.slopes = torch.tensor([0.5, 0.0625], requires_grad=True)

    def attend(self, q, k, v, slopes, **parameters):
        parameters = {"num_softmax_heads": 2, **parameters}
        return hstujit.torch.attention(
            q, k, v, self.offsets, self.longest, alpha=0.25, operands={"slopes": slopes}, **parameters
        )

    def biased(self, q, k, v, slopes, heads=2, score="silu"):
        n = self.longest
        distance = torch.arange(n)[:, None] - torch.arange(n)
        bias = (-4 * slopes[:, None, None] * distance).expand(4, -1, -1, -1)
        return formulas.attention(q, k, v, self.offsets, n, 0.25, rab=bias, num_softmax_heads=heads, score=score)

    def test_a_function_and_a_text_are_alibi(self):
        text = "x - slopes * (row - col)"
        for says in ({"softmax_score": alibi}, {"softmax_score": text}, {"score": alibi}, {"score": text}):
            self.check(self.attend(*self.qkv, self.slopes, **says), self.biased, self.slopes)

    def test_the_other_heads_have_the_score(self):
        both = {
            "softmax_score": alibi,
            "score": lambda x, b, h, row, col, slopes: torch.relu(alibi(x, b, h, row, col, slopes)) ** 2,
        }
        found = self.attend(*self.qkv, self.slopes, num_softmax_heads=1, **both)
        self.check(found, lambda *inputs: self.biased(*inputs, heads=1, score="relu2"), self.slopes)

    def test_a_graph_has_them(self):
        def attend(q, k, v, slopes):
            return self.attend(q, k, v, slopes, score=alibi)

        compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
        self.check(compiled(*self.qkv, self.slopes), self.biased, self.slopes)

    def test_layers_have_them(self):
        x, lengths = torch_cases.tensor(torch_cases.ROWS, 32, seed=50), torch.tensor([3, 0, 5])
        declared = {"operands": "slopes: head(grad)", "num_softmax_heads": 2}
        outs = []
        for says in ({"score": alibi}, {"softmax_score": "x - slopes * (row - col)"}):
            config = STULayerConfig(32, 2, 16, 8, **says, **declared)
            self.assertEqual((config.score, config.softmax_score), (None, "x - slopes * (row - col)"))
            torch.manual_seed(1)
            layer = STULayer(config).eval()
            outs.append(layer(x, lengths, torch_cases.offsets(), 8, operands={"slopes": self.slopes}))
        self.assertTrue(torch.equal(*outs))
        (gradient,) = torch.autograd.grad(outs[0].sum(), self.slopes)
        self.assertTrue(gradient.isfinite().all() and gradient.abs().sum() > 0)


if __name__ == "__main__":
    unittest.main()
