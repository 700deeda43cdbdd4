"""bench/references.py against the operators of this package, on the CPU: two formulas of the same thing."""

import pathlib
import sys
import unittest

import support
from torch_support import torch

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"

if torch:
    import hstujit.torch

    sys.path.insert(0, str(BENCH))
    import agreement
    import references

    sys.path.remove(str(BENCH))


@unittest.skipUnless(torch, "PyTorch is not installed")
class References(unittest.TestCase):
    def setUp(self):
        if not support.has_host_backend():
            self.skipTest("there is no host backend")
        generator = torch.Generator().manual_seed(3)
        self.random = lambda *shape: torch.randn(*shape, generator=generator)
        self.lengths = torch.tensor([5, 0, 23, 1, 11])
        self.offsets = torch.cat([self.lengths.new_zeros(1), self.lengths.cumsum(0)])
        self.targets = self.lengths.clamp(max=3)

    def test_attention(self):
        rows = int(self.offsets[-1])
        q, k, v, dout = (self.random(rows, 2, columns) for columns in (8, 8, 16, 16))
        for targets in (None, self.targets):
            for mask in (
                {},
                {"max_attn_len": 4},
                {"contextual_seq_len": 2},
                {"max_attn_len": 4, "contextual_seq_len": 2},
                {"sla_k1": 4, "sla_k2": 2},
            ):
                if "contextual_seq_len" in mask and targets is not None:
                    targets = targets.clamp(max=1) * (self.lengths > 2)  # contextual rows are a sequence's own
                exact = [tensor.double().requires_grad_() for tensor in (q, k, v)]
                out = references.attention(*exact, self.offsets, 24, 0.3, targets, **mask)
                expected = [out, *torch.autograd.grad(out, exact, dout.double())]
                common = (self.offsets, 24, 0.3, targets)
                found = [
                    torch.ops.hstujit.hstu_attention(q, k, v, *common, **mask),
                    *torch.ops.hstujit.hstu_attention_backward(q, k, v, dout, *common, **mask)[:3],
                ]
                self.assertLess(agreement.distance(found, expected), 1e-5, (targets, mask))

    def test_layer(self):
        config = hstujit.torch.STULayerConfig(
            embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, output_dropout_ratio=0.5, precision="ieee"
        )
        torch.manual_seed(1)
        layer = hstujit.torch.STULayer(config).eval()
        x = self.random(int(self.offsets[-1]), 32).requires_grad_()
        weights, rows = references.rounded(layer, x.dtype), x.detach().double().requires_grad_()
        names = sorted(weights)
        expected = references.layer(rows, weights, self.offsets, 24, self.targets, 2, 8, 16)
        found = layer(x, self.lengths, self.offsets, 24, self.targets)
        dout = self.random(*x.shape)
        own = [x, *(dict(layer.named_parameters())[name] for name in names)]
        found = [found, *torch.autograd.grad(found, own, dout)]
        exact = [expected, *torch.autograd.grad(expected, [rows, *(weights[name] for name in names)], dout.double())]
        self.assertLess(agreement.distance(found, exact), 1e-4)


if __name__ == "__main__":
    unittest.main()
