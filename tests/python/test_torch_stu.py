"""Layers as modules, beside a layer that is written in plain PyTorch in float64."""

import math
import unittest

from torch_support import torch

import hstujit

if torch:
    import torch_cases

    from hstujit.torch.stu import STULayer, STULayerConfig, STUStack

    OFFSETS = torch.tensor([0, 5, 6, 13])
    LENGTHS = OFFSETS.diff()
    ROWS = int(OFFSETS[-1])


def plain_attention(q, k, v, alpha, max_seq_len, targets):
    """Causal, of one sequence; targets do not see each other."""
    n = q.size(0)
    ids = torch.arange(n).clamp(max=n - targets)
    valid = (ids[:, None] > ids[None, :]) | torch.eye(n, dtype=torch.bool)
    scores = torch.nn.functional.silu(alpha * torch.einsum("ihd,jhd->hij", q, k)) / max_seq_len
    return torch.einsum("hij,jhd->ihd", torch.where(valid, scores, 0), v)


def plain_layer(layer, x, max_seq_len, num_targets):
    """The layer of docs/ops.md."""
    config = layer.config
    heads, width_v, width_qk = config.num_heads, config.hidden_dim, config.attention_dim
    p = {name: parameter.double() for name, parameter in layer.named_parameters()}
    norm = torch.nn.functional.layer_norm
    normed = norm(x, x.shape[1:], p["_input_norm_weight"], p["_input_norm_bias"], 1e-6)
    columns = normed @ p["_uvqk_weight"] + p["_uvqk_beta"]
    u, v, q, k = columns.split([heads * width_v] * 2 + [heads * width_qk] * 2, 1)
    u = torch.nn.functional.silu(u)
    q, k, v = (tensor.unflatten(1, (heads, -1)) for tensor in (q, k, v))
    attn = torch.cat([
        plain_attention(q[begin:end], k[begin:end], v[begin:end], layer._alpha, max_seq_len, targets)
        for begin, end, targets in zip(OFFSETS.tolist(), OFFSETS[1:].tolist(), num_targets.tolist())
    ]).flatten(1)  # fmt: skip
    weight, bias = p["_output_norm_weight"], p["_output_norm_bias"]
    if config.use_group_norm:
        parts = attn.unflatten(1, (heads, -1))
        product = (norm(parts, parts.shape[2:], eps=1e-6) * weight[:, None] + bias[:, None]).flatten(1)
    else:
        product = norm(attn, attn.shape[1:], weight, bias, 1e-6)
    return x + torch.cat([u, attn, u * product], 1) @ p["_output_weight"]


def distance(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layers(unittest.TestCase):
    def make(self, **more):
        torch.manual_seed(3)
        config = STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, **more)
        layer = STULayer(config)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
                parameter.copy_(parameter.bfloat16())  # so that rounding it changes nothing
        return layer

    def test_a_layer_is_that_of_plain_pytorch(self):
        targets = torch.tensor([2, 0, 3])
        for more in ({}, {"use_group_norm": True}, {"recompute_normed_x": False, "recompute_y": False}):
            with self.subTest(more):
                layer = self.make(output_dropout_ratio=0.0, **more)
                x = torch_cases.tensor(ROWS, 32, seed=40).bfloat16()
                weights = torch_cases.tensor(ROWS, 32, seed=41)
                ours, exact = x.clone().requires_grad_(), x.double().requires_grad_()
                out = layer(ours, LENGTHS, OFFSETS, 8, targets)
                expected = plain_layer(layer, exact, 8, targets)
                self.assertLess(distance(out, expected), 1e-2)
                parameters = list(layer.parameters())
                found = torch.autograd.grad((out * weights).sum(), [ours, *parameters])
                wanted = torch.autograd.grad((expected * weights).sum(), [exact, *parameters])
                names = ["x", *(name for name, _ in layer.named_parameters())]
                for name, actual, gradient in zip(names, found, wanted):
                    self.assertEqual(actual.shape, gradient.shape, name)
                    self.assertLess(distance(actual, gradient.double()), 3e-2, name)

    def test_new_rows_over_a_cache_are_the_last_rows_of_all(self):
        stack = STUStack([self.make(), self.make(contextual_seq_len=0)]).eval()
        x = torch_cases.tensor(ROWS, 32, seed=42).bfloat16()
        targets = torch.tensor([2, 1, 3])
        kept = LENGTHS - 1  # the last row of each is new
        last = OFFSETS[1:] - 1
        with torch.no_grad():
            whole = stack(x, LENGTHS, OFFSETS, 8, targets, kv_caching_lengths=kept)
            self.assertEqual(stack._stu_layers[0].kv_caching_offsets.tolist(), [0, 4, 4, 10])
            new = stack.cached_forward(x[last], targets)
            longest = stack._stu_layers[0].max_kv_caching_len + 1
            # Scores are divided by the longest sequence, which a launch says.
            expected = stack(x, LENGTHS, OFFSETS, longest, targets)
        self.assertEqual(whole.shape, x.shape)
        self.assertLess(distance(new, expected[last].double()), 1e-2)

    def test_a_cache_of_more_rows_than_the_least_bucket(self):
        layer = self.make().eval()
        lengths, offsets = torch.tensor([150, 90]), torch.tensor([0, 150, 240])
        x = torch_cases.tensor(240, 32, seed=45).bfloat16()
        last = torch.cat([torch.arange(148, 150), torch.arange(238, 240)])
        with torch.no_grad():
            whole = layer(x, lengths, offsets, 256, None, 254, lengths - 2)
            self.assertTrue(torch.equal(layer.cached_forward(x[last]), whole[last]))

    def test_gradients_in_eval_mode(self):
        layer = self.make(output_dropout_ratio=0.5).eval()
        x = torch_cases.tensor(ROWS, 32, seed=46).bfloat16().requires_grad_()
        layer(x, LENGTHS, OFFSETS, 8).sum().backward()
        self.assertGreater(x.grad.abs().sum().item(), 0)

    def test_dropout_is_drawn_in_training_alone(self):
        layer = self.make(output_dropout_ratio=0.5)
        x = torch_cases.tensor(ROWS, 32, seed=43).bfloat16()
        with torch.no_grad():
            self.assertFalse(torch.equal(layer(x, LENGTHS, OFFSETS, 8), layer(x, LENGTHS, OFFSETS, 8)))
            layer.eval()
            self.assertTrue(torch.equal(layer(x, LENGTHS, OFFSETS, 8), layer(x, LENGTHS, OFFSETS, 8)))

    def test_mistakes_are_sentences(self):
        layer = self.make()
        x = torch_cases.tensor(ROWS, 32, seed=44).bfloat16()
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "there is no cache"):
            layer.cached_forward(x[:3])
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "prefill"):
            layer(x, LENGTHS, OFFSETS, 8, kv_caching_lengths=LENGTHS)
        narrow = torch.zeros(ROWS, layer.config.embedding_dim - 4, dtype=torch.bfloat16)
        words = f"x has {narrow.size(1)} columns; it must have {layer.config.embedding_dim}, the embedding_dim"
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "^" + words):
            layer(narrow, LENGTHS, OFFSETS, 16)
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "x has dtype fp32; it must be bf16 or fp16"):
            layer(x.float(), LENGTHS, OFFSETS, 8)

    def test_alpha_is_that_of_the_public_layer(self):
        self.assertAlmostEqual(self.make()._alpha, 1 / math.sqrt(8))
        self.assertEqual(self.make(attn_alpha=0.5)._alpha, 0.5)
