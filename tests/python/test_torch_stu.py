"""Layers as modules, beside a layer that is written in plain PyTorch in float64."""

import dataclasses
import itertools
import math
import re
import types
import unittest

import numpy
from torch_support import torch

import hstujit

if torch:
    import torch_cases

    from hstujit.torch.stu import STULayer, STULayerConfig, STUStack

    OFFSETS = torch.tensor([0, 5, 6, 13])
    LENGTHS = OFFSETS.diff()
    ROWS = int(OFFSETS[-1])

KEPT = {"recompute_normed_x": False, "recompute_uvqk": False, "recompute_y": False}


def plain_attention(q, k, v, alpha, max_seq_len, targets, sequence):
    """Causal, of one sequence; targets do not see each other."""
    n = q.size(0)
    ids = torch.arange(n).clamp(max=n - targets)
    valid = (ids[:, None] > ids[None, :]) | torch.eye(n, dtype=torch.bool)
    scores = torch.nn.functional.silu(alpha * torch.einsum("ihd,jhd->hij", q, k)) / max_seq_len
    return torch.einsum("hij,jhd->ihd", torch.where(valid, scores, 0), v)


def plain_layer(layer, x, max_seq_len, num_targets, attend=plain_attention):
    """``stu_layer`` of docs/ops-layers.md. ``attend`` computes attention of one sequence."""
    config = layer.config
    heads, width_v, width_qk = config.num_heads, config.hidden_dim, config.attention_dim
    p = {name: parameter.double() for name, parameter in layer.named_parameters()}
    norm = torch.nn.functional.layer_norm
    normed = norm(x, x.shape[1:], p["_input_norm_weight"], p["_input_norm_bias"], 1e-6)
    columns = normed @ p["_uvqk_weight"] + p["_uvqk_beta"]
    silu = torch.nn.functional.silu
    u, *others = columns.split([heads * width_v] * 2 + [heads * width_qk] * 2, 1)
    u, v, q, k = silu(u), *(silu(part) if config.silu_uvqk else part for part in others)
    q, k, v = (tensor.unflatten(1, (heads, -1)) for tensor in (q, k, v))
    attn = torch.cat([
        attend(q[begin:end], k[begin:end], v[begin:end], layer._alpha, max_seq_len, targets, sequence)
        for sequence, (begin, end, targets) in enumerate(
            zip(OFFSETS.tolist(), OFFSETS[1:].tolist(), num_targets.tolist())
        )
    ]).flatten(1)  # fmt: skip
    weight, bias = p["_output_norm_weight"], p["_output_norm_bias"]
    if config.use_group_norm:
        parts = attn.unflatten(1, (heads, -1))
        product = (norm(parts, parts.shape[2:], eps=1e-6) * weight[:, None] + bias[:, None]).flatten(1)
    else:
        product = norm(attn, attn.shape[1:], weight, bias, 1e-6)
    y = torch.cat([u, attn, u * product], 1) if config.concat_ux else u * product
    return y @ p["_output_weight"] + (x if config.residual else 0)


def distance(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layers(unittest.TestCase):
    def make(self, **more):
        torch.manual_seed(3)
        sizes = {"embedding_dim": 32, "num_heads": 2, "hidden_dim": 16, "attention_dim": 8}
        config = STULayerConfig(**sizes | more)
        layer = STULayer(config)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
                parameter.copy_(parameter.bfloat16())  # so that rounding it changes nothing
        return layer

    def test_numbers_that_no_layer_can_have(self):
        """By the limits of ``stu_layer``, in the library's words and with the names of the fields."""
        for name, value in (
            ("output_dropout_ratio", -0.1),
            ("output_dropout_ratio", math.nan),
            ("output_dropout_ratio", None),
            ("attn_alpha", 1e300),
            ("attn_alpha", "0.1"),
            ("embedding_dim", 0),
            ("embedding_dim", 16385),
            ("num_heads", 2.5),
            ("hidden_dim", 264),
            ("attention_dim", -8),
            ("max_attn_len", -2),
            ("contextual_seq_len", None),
            ("backward_head_groups", 0),
            ("precision", "fp32"),
            ("sla_k1", -1),
            ("sla_k2", 0.5),
            ("mask", "col <= rwo"),
            ("score", "silu(y)"),
            ("operands", "gain: scalar"),
        ):
            sizes = {"embedding_dim": 32, "num_heads": 2, "hidden_dim": 16, "attention_dim": 8}
            changed = STULayerConfig(**sizes)
            setattr(changed, name, value)
            for call in (lambda: STULayerConfig(**{**sizes, name: value}), lambda: STULayer(changed)):  # noqa: B023
                with self.subTest(name, value=value):
                    with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, f"^{name} is .*; ") as raised:
                        call()
                    if name != "output_dropout_ratio":
                        self.assertEqual(raised.exception.argument, name)
        with self.assertRaises(hstujit.errors.InvalidArgumentError) as raised:
            STULayerConfig(16385, 0, 16, 8)
        names = [line.split()[0] for line in str(raised.exception).splitlines()]
        self.assertEqual(sorted(names), ["embedding_dim", "num_heads"])
        STULayerConfig(32, numpy.int64(2), 16, 8, output_dropout_ratio=1, attn_alpha=numpy.float32(0.5))

    def test_a_layer_is_that_of_plain_pytorch(self):
        targets = torch.tensor([2, 0, 3])
        less_memory = {"recompute_attn": True, "backward_head_groups": 2}
        ieee = {"precision": "ieee"}
        silu = {"silu_uvqk": True, "concat_ux": False}
        options = ({}, {"use_group_norm": True}, KEPT, {"recompute_uvqk": False}, less_memory, ieee, silu)
        options += ({**silu, "residual": False, "recompute_uvqk": False}, {**silu, **less_memory})
        types = ((torch.bfloat16, 1e-2, 3e-2), (torch.float32, 1e-5, 1e-5))
        for more, (dtype, bound, bound_of_gradients) in itertools.product(options, types):
            with self.subTest(more, dtype=dtype):
                self.compare(self.make(output_dropout_ratio=0.0, **more), dtype, targets, bound, bound_of_gradients)

    def compare(self, layer, dtype, targets, bound, bound_of_gradients):
        width = layer.config.embedding_dim
        x, weights = torch_cases.tensor(ROWS, width, seed=40).to(dtype), torch_cases.tensor(ROWS, width, seed=41)
        ours, exact = x.clone().requires_grad_(), x.double().requires_grad_()
        out = layer(ours, LENGTHS, OFFSETS, 8, targets)
        expected = plain_layer(layer, exact, 8, targets)
        self.assertLess(distance(out, expected), bound)
        parameters = list(layer.parameters())
        found = torch.autograd.grad((out * weights).sum(), [ours, *parameters])
        wanted = torch.autograd.grad((expected * weights).sum(), [exact, *parameters])
        names = ["x", *(name for name, _ in layer.named_parameters())]
        for name, actual, gradient in zip(names, found, wanted):
            self.assertEqual(actual.shape, gradient.shape, name)
            self.assertLess(distance(actual, gradient.double()), bound_of_gradients, name)

    def test_layers_of_the_papers_widths_are_those_of_plain_pytorch(self):
        """Rows of 50 elements in one head or two of 25, and odd ones: no copy of 16 bytes takes any of them."""
        targets = torch.tensor([2, 0, 3])
        for width, heads, head_dim in ((50, 1, 50), (50, 2, 25), (7, 2, 3)):
            sizes = {"embedding_dim": width, "num_heads": heads, "hidden_dim": head_dim, "attention_dim": head_dim}
            for more, dtype, bound, bound_of_gradients in (
                ({}, torch.bfloat16, 1e-2, 3e-2),
                (KEPT, torch.float32, 1e-5, 1e-5),
                ({"use_group_norm": True}, torch.bfloat16, 1e-2, 3e-2),
                ({"silu_uvqk": True, "concat_ux": False}, torch.float32, 1e-5, 1e-5),
            ):
                with self.subTest(more, dtype=dtype, **sizes):
                    layer = self.make(output_dropout_ratio=0.0, **sizes, **more)
                    self.compare(layer, dtype, targets, bound, bound_of_gradients)

    def test_a_cache_of_the_papers_widths(self):
        layer = self.make(embedding_dim=50, hidden_dim=25, attention_dim=25).eval()
        x = torch_cases.tensor(ROWS, 50, seed=50).bfloat16()
        last = OFFSETS[1:] - 1
        with torch.no_grad():
            layer(x, LENGTHS, OFFSETS, 8, kv_caching_lengths=LENGTHS - 1)
            new = layer.cached_forward(x[last])
            whole = layer(x, LENGTHS, OFFSETS, layer.max_kv_caching_len + 1)
        self.assertLess(distance(new, whole[last].double()), 1e-2)

    def test_new_rows_over_a_cache_are_the_last_rows_of_all(self):
        stack = STUStack([self.make(), self.make(silu_uvqk=True, residual=False)]).eval()
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

    def test_a_configuration_that_is_changed_later_changes_no_layer(self):
        fields = dataclasses.asdict(STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8))
        changed = {
            "embedding_dim": 64, "num_heads": 1, "hidden_dim": 8, "attention_dim": 16, "output_dropout_ratio": 0.9,
            "max_attn_len": 2, "attn_alpha": 3.0, "contextual_seq_len": 2, "backward_head_groups": 2,
            "precision": "ieee", "num_softmax_heads": 2, "sla_k1": 3, "sla_k2": 1, "mask": "col <= row",
            "score": "relu(x)", "softmax_score": "2.0 * x", "operands": "gain: scalar",
        }  # fmt: skip
        changed |= {name: not value for name, value in fields.items() if isinstance(value, bool)}
        self.assertEqual(set(fields), set(changed))
        x = torch_cases.tensor(ROWS, 32, seed=47).bfloat16()
        targets = torch.tensor([2, 0, 3])

        def seen(layer):
            torch.manual_seed(4)
            out = layer(x, LENGTHS, OFFSETS, 8, targets)
            return out, layer.instances(training=8, prefill=8, cached_forward=9, num_targets=True), repr(layer)

        for given in (STULayerConfig(**fields), types.SimpleNamespace(**fields)):  # ours, and another package's
            layer = STULayer(given)
            out, *others = seen(layer)
            for target in (given, layer.config):
                for name, value in changed.items():
                    setattr(target, name, value)
            again, *others_again = seen(layer)
            self.assertTrue(torch.equal(out, again))
            self.assertEqual(others, others_again)

    def test_the_seed_of_tensors_of_shapes_alone_is_one(self):
        """In a graph the draw is a node, and no number."""
        from torch.fx.experimental.proxy_tensor import make_fx

        with torch._subclasses.FakeTensorMode():
            layer = self.make(output_dropout_ratio=0.5)
            x, offsets = torch.empty(ROWS, 32, dtype=torch.bfloat16), torch.empty(4, dtype=torch.int64)

            def call(x):
                return layer(x, offsets.diff(), offsets, 8)

            call(x).sum().backward()
            self.assertEqual(layer._uvqk_weight.grad.shape, layer._uvqk_weight.shape)
            drawn = [node for node in make_fx(call)(x).graph.nodes if "random" in str(node.target)]
            self.assertEqual(len(drawn), 1)

    def test_mistakes_are_sentences(self):
        layer = self.make()
        x = torch_cases.tensor(ROWS, 32, seed=44).bfloat16()
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "there is no cache"):
            layer.cached_forward(x[:3])
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "prefill"):
            layer(x, LENGTHS, OFFSETS, 8, kv_caching_lengths=LENGTHS)
        narrow = torch.zeros(ROWS, layer.config.embedding_dim - 4, dtype=torch.bfloat16)
        words = "x has shape (13, 28); it must be (L, embedding_dim), which is 32"
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "^" + re.escape(words)):
            layer(narrow, LENGTHS, OFFSETS, 16)
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "x has dtype fp64; it must be bf16, fp16 or"):
            layer(x.double(), LENGTHS, OFFSETS, 8)

    def test_alpha_is_that_of_the_public_layer(self):
        self.assertAlmostEqual(self.make()._alpha, 1 / math.sqrt(8))
        self.assertEqual(self.make(attn_alpha=0.5)._alpha, 0.5)

    def test_mistakes_of_a_prefill_name_its_arguments(self):
        layer = self.make().eval()
        x = torch_cases.tensor(ROWS, 32, seed=47).bfloat16()
        longer = torch.tensor([2, 3, 1])
        for words, more in (
            ("kv_caching_lengths[1] is 3; it must be from 0 to 1, the rows of its", {"kv_caching_lengths": longer}),
            ("kv_caching_lengths[2] is -1; it must be from 0 to 7", {"kv_caching_lengths": torch.tensor([2, 1, -1])}),
            ("kv_caching_lengths has shape (2,); it must be (B) = (3), as x_offsets",
             {"kv_caching_lengths": LENGTHS[:2]}),
            ("kv_caching_lengths has shape (1, 3); it must be (B) = (3)", {"kv_caching_lengths": LENGTHS[None]}),
            ("kv_caching_lengths has dtype fp32; it must be int32 or int64", {"kv_caching_lengths": LENGTHS.float()}),
            ("max_kv_caching_len is 3; it must be at least 7, the longest, or 0",
             {"kv_caching_lengths": LENGTHS, "max_kv_caching_len": 3}),
        ):  # fmt: skip
            with self.subTest(words), torch.no_grad(), self.assertRaises(hstujit.errors.InvalidArgumentError) as raised:
                layer(x, LENGTHS, OFFSETS, 8, **more)
            self.assertTrue(str(raised.exception).startswith(words), str(raised.exception))
            self.assertIsNone(layer.k_cache)

    def test_mistakes_behind_a_cache_name_its_arguments(self):
        layer = self.make().eval()
        x = torch_cases.tensor(ROWS, 32, seed=48).bfloat16()
        with torch.no_grad():
            layer(x, LENGTHS, OFFSETS, 8, kv_caching_lengths=LENGTHS - 1)
        kept, longer = layer.k_cache, torch.tensor([1, 2, 1])
        for words, rows, more in (
            ("delta_x.shape[0] is 4; it must be ", x[:4], {}),
            ("k_cache has dtype bf16; it must be fp16", x[:3].half(), {}),
            ("delta_x has shape (32,); it must be (B * new rows, embedding_dim), which is 32", x[0], {}),
            ("kv_caching_lengths[1] is 2; it must be from 0 to 1", x[:3], {"kv_caching_lengths": longer}),
            ("kv_caching_lengths has shape (1,); it must be (B) = (3), as the prefill", x[:3],
             {"kv_caching_lengths": LENGTHS[:1]}),
            ("max_kv_caching_len is 4; it must be at least 7, the longest, or 0", x[:3],
             {"kv_caching_lengths": LENGTHS, "max_kv_caching_len": 4}),
        ):  # fmt: skip
            with self.subTest(words), torch.no_grad(), self.assertRaises(hstujit.errors.InvalidArgumentError) as raised:
                layer.cached_forward(rows, **more)
            self.assertTrue(str(raised.exception).startswith(words), str(raised.exception))
            self.assertIs(layer.k_cache, kept)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(layer.cached_forward(x[:3].half()).dtype, torch.bfloat16)

    def test_a_batch_without_sequences_has_a_cache(self):
        layer = self.make().eval()
        none = torch.zeros(0, dtype=torch.int64)
        with torch.no_grad():
            layer(torch.zeros(0, 32).bfloat16(), none, torch.zeros(1, dtype=torch.int64), 8, None, 4, none)
            self.assertEqual(layer.cached_forward(torch.zeros(0, 32).bfloat16()).shape, (0, 32))
            with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, r"delta_x.shape\[0\] is 1; .* B = 0"):
                layer.cached_forward(torch.zeros(1, 32).bfloat16())

    def test_a_prefill_while_pytorch_traces(self):
        layer = self.make().eval()
        x = torch_cases.tensor(ROWS, 32, seed=49).bfloat16()
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv())
        fake = mode.from_tensor
        with mode, torch.no_grad():
            lengths, offsets = fake(LENGTHS), fake(OFFSETS)
            parameters = {name: fake(parameter) for name, parameter in layer.named_parameters()}
            arguments = fake(x), lengths, offsets, 8, None, 8, lengths
            out = torch.func.functional_call(layer, parameters, arguments)
        self.assertEqual(out.shape, x.shape)
        self.assertEqual(layer.max_kv_caching_len, 8)
