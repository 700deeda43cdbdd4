"""Arguments of functions and layers: numbers of other frameworks, and names in sentences."""

import re
import unittest

import numpy
from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch
    from hstujit.torch import (
        STULayer,
        STULayerConfig,
        STUStack,
        functional,
        functional_layer,
        generative_recommenders,
        tzrec,
    )


@unittest.skipUnless(torch, "PyTorch is not installed")
class Functions(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        self.given = {"max_seq_len": length, "alpha": alpha, "q": q, "k": k, "v": v, "seq_offsets": offsets}
        self.x, self.weight = torch_cases.tensor(4, 16), torch.ones(16)

    def refused(self, sentence, call):
        with self.assertRaisesRegex(errors.InvalidArgumentError, f"^{re.escape(sentence)}$"):
            call()

    def attention(self, **change):
        return functional.hstu_mha(**{**self.given, **change})

    def test_rows_without_columns(self):
        none = torch.ones(0)
        for norm in (functional.layer_norm, functional.swish_layer_norm, lambda x, w, b: functional.rms_norm(x, w)):
            self.refused("x.shape[1] is 0; it must be width, from 1 to 16384",
                         lambda norm=norm: norm(self.x[:, :0], none, none))  # fmt: skip

    def test_two_dense_sides(self):
        for left_rows, right_rows in ((2, 3), (0, 3), (2, 0), (0, 0)):
            left, right = torch_cases.tensor(4 * left_rows, 8), torch_cases.tensor(4 * right_rows, 8)
            lengths = {"max_len_left": left_rows, "max_len_right": right_rows}
            with self.subTest(**lengths):
                rows = functional.concat_2D_jagged(values_left=left, values_right=right, **lengths)
                both = left.view(4, left_rows, 8), right.view(4, right_rows, 8)
                self.assertTrue(torch.equal(rows, torch.cat(both, 1).view(-1, 8)))
                again = functional.split_2D_jagged(8, rows, **lengths)
                self.assertTrue(torch.equal(again[0], left) and torch.equal(again[1], right))

    def test_shapes_of_padded_rows_are_those_of_the_call(self):
        offsets = torch_cases.offsets()
        width = "it must be width, from 1 to 16384"
        for shape, sentence in (
            ((3, 5, 0), f"dense.shape[2] is 0; {width}"),
            ((3, 5, 16385), f"dense.shape[2] is 16385; {width}"),
            ((3, 5), "dense has shape (3, 5); it must be (B, max_len, D)"),
        ):
            for device in ("cpu", "meta"):
                dense = torch.zeros(shape, device=device)
                self.refused(
                    sentence, lambda dense=dense: functional.dense_to_jagged(dense, offsets.to(dense.device), 8)
                )
        dense = torch.zeros(3, 5, 16)
        self.refused("seq_offsets.shape[0] is 0; it must be B+1, at least 1, shape (B+1)",
                     lambda: functional.dense_to_jagged(dense, offsets[:0]))  # fmt: skip
        mode = torch._subclasses.FakeTensorMode(shape_env=torch.fx.experimental.symbolic_shapes.ShapeEnv())
        with mode:
            some = mode.shape_env.create_unbacked_symint
            rows = functional.dense_to_jagged(torch.empty(some(), 5, 16), torch.empty(some(), dtype=torch.int64), 8)
        self.assertEqual(rows.shape, (8, 16))

    def test_weights_are_real_numbers(self):
        for kind in (torch.complex64, torch.bool, torch.int64):
            name = str(kind).removeprefix("torch.")
            wrong, weight = self.weight.to(kind), self.weight
            projection = 1e-5, 2, 8, 8, torch.ones(16, 64), torch.ones(64)
            for argument, call in (
                ("weight", lambda w=wrong: functional.layer_norm(self.x, w, weight)),  # noqa: B023
                ("bias", lambda w=wrong: functional.layer_norm(self.x, weight, w)),  # noqa: B023
                ("norm_weight", lambda w=wrong: tzrec.hstu_compute_uqvk(self.x, w, weight, *projection)),  # noqa: B023
            ):
                with self.assertRaisesRegex(errors.InvalidArgumentError, f"^{argument} has dtype {name}; it must be "):
                    call()

    def test_sentences_have_the_names_of_the_function(self):
        x, offsets = torch_cases.tensor(8, 16), torch_cases.offsets()
        projection = torch.ones(16, 64), torch.ones(64)
        masks = 8, offsets, 0.25, True, None, 0, 0, False, False, False

        def half(heads=2, eps=1e-5, alpha=0.25, prefill=False):
            given = x, self.weight, self.weight, eps, heads, 8, 8, *projection, *masks[:2], alpha, *masks[3:], prefill
            return generative_recommenders.hstu_preprocess_and_attention(*given)

        def uqvk(**change):
            names = "x", "norm_weight", "norm_bias", "norm_eps", "num_heads", "attn_dim", "hidden_dim"
            given = dict(zip(names, (x, self.weight, self.weight, 1e-5, 2, 8, 8), strict=True))
            weights = {"uvqk_weight": projection[0], "uvqk_bias": projection[1]}
            return functional_layer.hstu_compute_uqvk(**{**given, **weights, **change})

        def output(module, **change):
            concat = {"concat_ux": True} if module is tzrec else {"concat_u": True, "concat_x": True,
                                                                  "mul_u_activation_type": "none"}  # fmt: skip
            given = {
                "attn": x, "u": x, "x": x, "norm_weight": self.weight, "norm_bias": self.weight, "norm_eps": 1e-5,
                "output_weight": torch.ones(48, 16), "num_heads": 2, "linear_dim": 8, "dropout_ratio": 0.0,
                "training": False, "group_norm": False, "recompute_y_in_backward": False, **concat, **change,
            }  # fmt: skip
            return module.hstu_compute_output(**given)

        l2 = generative_recommenders.hstu_concat_l2_embeddings
        wrong = offsets + 1
        for words, call in (
            ("prefix_x has rank 3", lambda: l2(5, x[..., None], offsets, 5, x, offsets, 0)),
            ("l2_x.shape[1] is 8", lambda: l2(5, x, offsets, 5, x[:, :8], offsets, 0)),
            ("prefix_offsets[0] is 1", lambda: l2(5, x, wrong, 5, x, offsets, 0)),
            ("contextual_seq_len is -1", lambda: l2(5, x, offsets, 5, x, offsets, -1)),
            ("values_right.shape[1] is 8", lambda: tzrec.concat_2D_jagged(x, x[:, :8], 5, 5, offsets, offsets)),
            ("values.shape[0] is 8; it must be 5, B = 1 times 5",
             lambda: functional.split_2D_jagged(5, x, max_len_left=2, max_len_right=3)),
            ("values.shape[0] is 8; it must be 0, B = 0 times 0",
             lambda: functional.split_2D_jagged(5, x, max_len_left=0, max_len_right=0)),
            ("total_len_left is -1; it must be at least 0",
             lambda: functional.split_2D_jagged(8, x, None, 9, offsets_left=offsets, offsets_right=offsets)),
            ("values_left.shape[0] is 7; it must be 6, B = 3 times 2",
             lambda: functional.concat_2D_jagged(
                 values_left=x[:7], values_right=x[:6], max_len_left=2, max_len_right=3)),
            ("values_right.shape[0] is 6; it must be ",
             lambda: functional.concat_2D_jagged(
                 values_left=x, values_right=x[:6], max_len_left=2, max_len_right=3)),
            ("num_heads is -1; allowed: an integer from 1 to 1024 (number of attention heads H)",
             lambda: half(heads=-1)),
            ("num_heads is -1", lambda: half(heads=-1, prefill=True)),
            ("norm_eps is -1", lambda: half(eps=-1.0)),
            ("attn_alpha is inf", lambda: half(alpha=float("inf"))),
            ("attn_alpha is inf", lambda: half(alpha=float("inf"), prefill=True)),
            ("norm_weight.shape[0] is 8", lambda: uqvk(norm_weight=self.weight[:8])),
            ("norm_eps is nan", lambda: uqvk(norm_eps=float("nan"))),
            ("num_heads is 2000", lambda: uqvk(num_heads=2000)),
            ("linear_dim is 257", lambda: output(tzrec, linear_dim=257)),
            ("norm_eps is -1", lambda: output(generative_recommenders, norm_eps=-1.0)),
            ("mul_u_activation_type is", lambda: output(generative_recommenders, mul_u_activation_type="relu")),
            ("delta_q has rank 2", lambda: functional.delta_hstu_mha(
                8, 0.25, self.given["q"][:3, 0], self.given["k"], self.given["v"], offsets)),
            ("max_attn_len is -7", lambda: self.attention(max_attn_len=-7)),
        ):  # fmt: skip
            with self.subTest(words), self.assertRaises(errors.Error) as raised:
                call()
            self.assertTrue(str(raised.exception).startswith(words), str(raised.exception))

    def test_numbers_of_other_kinds_are_taken(self):
        expected = self.attention(alpha=0.5)
        for length, alpha in (
            (numpy.int64(8), numpy.float32(0.5)),
            (torch.tensor(8), torch.tensor(0.5)),
            (torch.tensor(8, dtype=torch.uint8), 0.5),
        ):
            self.assertTrue(torch.equal(self.attention(max_seq_len=length, alpha=alpha), expected))

    def test_none_is_no_flag(self):
        """PyTorch takes it for False, also where the default is True."""
        given = dict(self.given, alpha=1.0)
        for recorded in (False, True):
            given["q"].requires_grad_(recorded)
            for name in ("causal", "full_mask"):
                self.refused(
                    f"{name} is None; it must be True or False",
                    lambda name=name, given=given: torch.ops.hstujit.hstu_attention(**given, **{name: None}),
                )

    def test_lengths_may_be_symbols_while_pytorch_traces(self):
        lengths = []

        def model(x, q, seq_offsets, size: int):
            out = generative_recommenders.hstu_mha(size, 0.25, q, q, q, seq_offsets, max_attn_len=size - 1)
            return out + functional.jagged_to_padded_dense(x, seq_offsets, x.shape[0])[0].sum()

        def backend(graph, inputs):
            lengths.append(graph)
            return graph.forward

        compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
        x, q, offsets = torch_cases.tensor(8, 16), self.given["q"], self.given["seq_offsets"]
        for size in (8, 9):
            torch.testing.assert_close(compiled(x, q, offsets, size), model(x, q, offsets, size))

        class Model(torch.nn.Module):
            def forward(self, x, seq_offsets):
                return functional.jagged_to_padded_dense(x, seq_offsets, x.shape[0], 0.5)

        rows = {0: torch.export.Dim("rows", min=2, max=2**20)}
        for strict in (False, True):
            program = torch.export.export(Model(), (x, offsets), dynamic_shapes=(rows, None), strict=strict).module()
            for given in (x, x[:, :].repeat(2, 1)):
                torch.testing.assert_close(program(given, offsets), Model()(given, offsets))
        traced = torch.fx.experimental.proxy_tensor.make_fx(Model(), tracing_mode="symbolic")(x, offsets)
        torch.testing.assert_close(traced(x, offsets), Model()(x, offsets))
        scripted = torch.jit.trace(Model(), (x, offsets), check_trace=False)
        torch.testing.assert_close(scripted(x, offsets), Model()(x, offsets))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layers(unittest.TestCase):
    SIZES = {"embedding_dim": 32, "num_heads": 2, "hidden_dim": 16, "attention_dim": 8}

    def refused(self, sentence, call):
        with self.assertRaisesRegex(errors.InvalidArgumentError, f"^{re.escape(sentence)}$"):
            call()

    def test_fields_of_a_configuration_that_do_not_fit_together(self):
        for change, sentence in (
            ({"backward_head_groups": 3}, "backward_head_groups is 3; allowed: divisors of 2, the num_heads"),
            ({"num_heads": 128, "hidden_dim": 256},
             "num_heads is 128, so the projection has 67584 columns u, v, q and k; allowed: at most 65536\n"
             "num_heads is 128, so the attention output has 32768 columns; allowed: at most 16384"),
        ):  # fmt: skip
            self.refused(sentence, lambda change=change: STULayerConfig(**{**self.SIZES, **change}))
            config = STULayerConfig(**self.SIZES)
            vars(config).update(change)
            self.refused(sentence, lambda config=config: STULayer(config))

    def test_what_is_no_configuration(self):
        for config in (self.SIZES, None, []):
            sentence = f"config is {config!r}; it must be an STULayerConfig: it has no embedding_dim"
            self.refused(sentence, lambda config=config: STULayer(config))

    def test_lengths_and_names_of_instances(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        expected = layer.instances(training=[8, 16])
        for value in (numpy.array([8, 16]), torch.tensor([8, 16]), [numpy.int64(8), 16], range(8, 17, 8)):
            self.assertEqual(layer.instances(training=value), expected)
        for value in (numpy.int64(8), torch.tensor(8)):
            self.assertEqual(layer.instances(training=value), layer.instances(training=8))
        for name in ("", "a.b_c-1", "x" * 80):
            for module in (layer, STUStack([layer])):
                hstujit.Config(module.instances(training=8, inference=8, prefill=8, cached_forward=8, name=name))

    def test_layers_of_a_stack_have_one_width(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        wide = STULayer(STULayerConfig(**{**self.SIZES, "embedding_dim": 64}))
        self.refused("stu_list[1] has the embedding_dim 64; it must be 32, as that of stu_list[0]",
                     lambda: STUStack([layer, wide, layer]))  # fmt: skip

    def test_a_layer_shows_its_configuration(self):
        layer = STULayer(STULayerConfig(**self.SIZES, causal=False))
        shown = "embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, causal=False"
        self.assertEqual(repr(layer), f"STULayer({shown})")
        self.assertIn(shown, repr(STUStack([layer])))

    def test_sentences_have_the_names_of_the_module(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        x, offsets = torch_cases.tensor(8, 32), torch_cases.offsets()
        wrong, lengths = offsets + 3, offsets.diff()
        for module in (layer, STUStack([layer])):
            self.refused("x_offsets[0] is 3; it must be 0", lambda module=module: module(x, lengths, wrong, 8))
            self.refused("sequence 0 has 3 rows by x_offsets; at most max_seq_len = 2 are allowed",
                         lambda module=module: module(x, lengths, offsets, 2))  # fmt: skip
        layer._uvqk_weight = torch.nn.Parameter(torch.zeros(32, 8))
        with self.assertRaisesRegex(errors.InvalidArgumentError, r"^_uvqk_weight.shape\[1\] is 8; "):
            layer(x, lengths, offsets, 8)

    def test_every_name_of_a_sentence_is_known(self):
        """A module has the names of ``stu_layer`` and ``cached_stu_layer``, or others for them."""
        forward = {*hstujit.torch._layer_config.NAMES, "x", "x_offsets", "num_targets", "max_seq_len"}
        cache = {"k_cache", "v_cache", "kv_caching_offsets", "max_delta_len"}
        own = cache | {
            "eps",
            "seed",
            "seed_tensor",
            "offset",
            "rab",
            "attn_scale",
            "num_contexts",
            "attn_func",
            "scaling_seqlen",
            "row_numbers",
            "seq_offsets_q",
        }  # which no caller gives
        for name in ("stu_layer", "cached_stu_layer"):
            for argument in getattr(torch.ops.hstujit, name).default._schema.arguments:
                if not argument.kwarg_only:
                    self.assertIn(argument.name, forward | own)
