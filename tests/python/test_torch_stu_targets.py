"""The targets' rows of a layer alone, beside the whole layer and a layer that is written in plain PyTorch."""

import itertools
import re
import unittest

from torch_support import torch

import hstujit

if torch:
    import torch_cases
    from test_torch_stu import KEPT, LENGTHS, OFFSETS, ROWS, distance, plain_layer

    from hstujit.torch.stu import STULayer, STULayerConfig

    TARGETS = torch.tensor([2, 0, 4])
    NUMBERS = torch.tensor([3, 4, 9, 10, 11, 12])  # of their rows


def make(**more):
    torch.manual_seed(3)
    layer = STULayer(STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, **more))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
            parameter.copy_(parameter.bfloat16())  # so that rounding it changes nothing
    return layer


def gradients(layer, x, out):
    weights = torch_cases.tensor(*out.shape, seed=41)
    return torch.autograd.grad((out * weights).sum(), [x, *layer.parameters()])


@unittest.skipUnless(torch, "PyTorch is not installed")
class TargetsOnly(unittest.TestCase):
    CONFIGS = (
        {},
        {"use_group_norm": True, "max_attn_len": 3, "contextual_seq_len": 1},
        {**KEPT, "recompute_attn": True, "backward_head_groups": 2},
        {"silu_uvqk": True, "concat_ux": False, "residual": False},
        {"num_softmax_heads": 1, "target_aware": False},
    )

    def test_is_that_of_plain_pytorch(self):
        """The first and the fourth, whose attention ``plain_layer`` has."""
        types = ((torch.bfloat16, 1e-2, 3e-2), (torch.float32, 1e-5, 1e-5))
        for more, (dtype, bound, bound_of_gradients) in itertools.product(self.CONFIGS[::3], types):
            with self.subTest(more, dtype=dtype):
                layer = make(output_dropout_ratio=0.0, precision="ieee", **more)
                x = torch_cases.tensor(ROWS, 32, seed=40).to(dtype)
                ours, exact = x.clone().requires_grad_(), x.double().requires_grad_()
                out = layer.forward_targets_only(ours, LENGTHS, OFFSETS, 8, TARGETS)
                expected = plain_layer(layer, exact, 8, TARGETS)[NUMBERS]
                self.assertLess(distance(out, expected), bound)
                found, wanted = gradients(layer, ours, out), gradients(layer, exact, expected)
                for name, actual, gradient in zip(["x", *dict(layer.named_parameters())], found, wanted):
                    self.assertLess(distance(actual, gradient.double()), bound_of_gradients, name)

    def test_is_the_rows_of_the_whole_layer(self):
        """To the bit in fp32, with what dropout drops, and no other numbers are drawn afterwards."""
        for more, training in itertools.product(self.CONFIGS, (True, False)):
            with self.subTest(more, training=training):
                layer = make(output_dropout_ratio=0.5, precision="ieee", **more).train(training)
                x = torch_cases.tensor(ROWS, 32, seed=42)
                whole, part = x.clone().requires_grad_(), x.clone().requires_grad_()
                torch.manual_seed(4)
                expected, state = layer(whole, LENGTHS, OFFSETS, 8, TARGETS)[NUMBERS], torch.get_rng_state()
                torch.manual_seed(4)
                out = layer.forward_targets_only(part, LENGTHS, OFFSETS, 8, TARGETS)
                self.assertTrue(torch.equal(torch.get_rng_state(), state))
                self.assertTrue(torch.equal(out, expected))
                self.assertEqual((out == 0).any(), (expected == 0).any())
                found, wanted = gradients(layer, part, out), gradients(layer, whole, expected)
                for name, actual, gradient in zip(["x", *dict(layer.named_parameters())], found, wanted):
                    self.assertLess(distance(actual, gradient.double()), 1e-5, name)
                with torch.no_grad():
                    torch.manual_seed(4)
                    self.assertTrue(torch.equal(layer.forward_targets_only(x, LENGTHS, OFFSETS, 8, TARGETS), expected))

    def test_numbers_that_are_given_are_not_read(self):
        layer, x = make().eval(), torch_cases.tensor(ROWS, 32, seed=43).bfloat16()
        counted = {"max_targets": 5, "total_targets": 6}
        for offsets, targets in ((OFFSETS, TARGETS), (OFFSETS.int(), TARGETS), (OFFSETS.int(), TARGETS.int())):
            expected = layer(x, LENGTHS, offsets, 8, targets)[NUMBERS]
            self.assertTrue(torch.equal(layer.forward_targets_only(x, LENGTHS, offsets, 8, targets), expected))
            out = layer.forward_targets_only(x, LENGTHS, offsets, 8, targets, **counted)
            self.assertTrue(torch.equal(out, expected))
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            fakes = torch.empty(ROWS, 32, dtype=torch.bfloat16), torch.empty(4, dtype=torch.int64)
            own = make(output_dropout_ratio=0.5)
            call = fakes[0], fakes[1].diff(), fakes[1], 8, torch.empty(3, dtype=torch.int64)
            self.assertEqual(own.forward_targets_only(*call, **counted).shape, (6, 32))

    def test_no_rows_and_all_rows(self):
        layer, x = make(output_dropout_ratio=0.0), torch_cases.tensor(ROWS, 32, seed=44).requires_grad_()
        none = layer.forward_targets_only(x, LENGTHS, OFFSETS, 8, torch.zeros_like(LENGTHS))
        self.assertEqual(none.shape, (0, 32))
        for gradient in torch.autograd.grad(none.sum(), [x, *layer.parameters()]):
            self.assertFalse(gradient.any())
        every = layer.forward_targets_only(x, LENGTHS, OFFSETS, 8, LENGTHS)
        self.assertTrue(torch.equal(every, layer(x, LENGTHS, OFFSETS, 8, LENGTHS)))

    def test_mistakes_name_the_arguments(self):
        layer, x = make(), torch_cases.tensor(ROWS, 32, seed=45).bfloat16()
        call = x, LENGTHS, OFFSETS, 8
        cases = (
            (
                (*call, torch.tensor([2, 0])),
                {},
                r"num_targets has shape \(2,\); it must be \(B\) = \(3\), as x_offsets",
            ),
            ((*call, torch.tensor([2, 0, 8])), {}, r"num_targets\[2\] is 8; it must be from 0 to 7, the rows of its"),
            ((*call, TARGETS.double()), {}, "num_targets has dtype fp64; it must be int32 or int64"),
            ((*call, TARGETS), {"max_targets": 1, "total_targets": 6}, "num_targets.* max_targets = 1"),
            (
                (*call, TARGETS),
                {"max_targets": 4, "total_targets": 7},
                r"num_targets\[3\] is 6; it must be Lq = 7, bec",
            ),
            ((torch.cat([x, x]), *call[1:], TARGETS), {}, r"x_offsets\[3\] is 13; it must be L = 26, because rows "),
            ((x[:, :8], *call[1:], TARGETS), {}, r"x has shape \(13, 8\); it must be \(L, embedding_dim\)"),
        )
        for arguments, more, sentence in cases:
            with self.subTest(sentence), self.assertRaises(hstujit.errors.InvalidArgumentError) as raised:
                layer.forward_targets_only(*arguments, **more)
            self.assertRegex(str(raised.exception), sentence)

    def test_a_graph_is_refused(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = make()

            def forward(self, x, offsets, targets):
                return self.layer.forward_targets_only(x, offsets.diff(), offsets, 8, targets)

        sentence = re.escape("forward_targets_only is called while torch.fx traces; a graph has forward alone")
        with self.assertRaisesRegex(hstujit.errors.UnsupportedError, sentence):
            torch.fx.symbolic_trace(Model())


if __name__ == "__main__":
    unittest.main()
