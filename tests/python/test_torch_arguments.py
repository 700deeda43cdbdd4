"""Numbers, flags and texts of functions and layers, which PyTorch would take for other ones without a word."""

import fractions
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

    def test_integers(self):
        for value in (40.0, "40", True, None, torch.tensor(40.7), torch.tensor(True), numpy.float32(40), [40]):
            sentence = f"max_seq_len is {value!r}; it must be an integer"
            self.refused(sentence, lambda value=value: self.attention(max_seq_len=value))
            others = list(self.given.values())[1:]
            self.refused(sentence, lambda value=value, others=others: functional.hstu_mha(value, *others))
        for value in (None, True, 0.5):
            for function in (functional.hstu_mha, generative_recommenders.hstu_mha, tzrec.hstu_mha):
                with self.assertRaisesRegex(errors.InvalidArgumentError, "^max_attn_len is .*; it must be an integer$"):
                    function(**self.given, max_attn_len=value)

    def test_real_numbers(self):
        for value in ("0.25", True, None, 1j, torch.tensor(True), self.weight):
            with self.assertRaisesRegex(errors.InvalidArgumentError, "^alpha is .*; it must be a number$"):
                self.attention(alpha=value)
        norms = functional.layer_norm, functional.swish_layer_norm
        calls = [lambda eps, norm=norm: norm(self.x, self.weight, self.weight, eps=eps) for norm in norms]
        for call in (*calls, lambda eps: functional.rms_norm(self.x, self.weight, eps)):
            self.refused("eps is '1e-5'; it must be a number", lambda call=call: call("1e-5"))
            self.refused("eps is True; it must be a number", lambda call=call: call(True))
        wanted = torch.tensor(0.25, requires_grad=True)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "alpha is a tensor that requires a gradient"):
            self.attention(alpha=wanted)
        self.attention(alpha=wanted.detach())

    def test_numbers_that_pytorch_has_no_room_for(self):
        for function in (functional.hstu_mha, generative_recommenders.hstu_mha, tzrec.hstu_mha):
            for value, shown in ((2**63, str(2**63)), (-(2**63) - 1, str(-(2**63) - 1)),
                                 (10**5000, "an integer of 16610 bits")):  # fmt: skip
                sentence = f"max_attn_len is {shown}; it must be an integer of 64 bits"
                self.refused(sentence, lambda f=function, value=value: f(**self.given, max_attn_len=value))
        for value, bits in ((10**400, 1329), (10**5000, 16610)):
            sentence = f"eps is an integer of {bits} bits; it must be a number that fp64 has room for"
            norms = functional.rms_norm, tzrec.rms_norm
            for norm in norms:
                self.refused(sentence, lambda norm=norm, value=value: norm(self.x, self.weight, value))
        output = [self.x, self.x, self.x, self.weight, self.weight, 1e-5, torch.ones(48, 16), 2, 8, 0.0, False]
        output += [True, True, "\ud800", False, False]
        sentence = "mul_u_activation_type is '\\ud800'; it must be a text without lone surrogates"
        self.refused(sentence, lambda: generative_recommenders.hstu_compute_output(*output))

    def test_tensors_without_strides(self):
        quantized = torch.quantize_per_tensor(self.x, 0.1, 0, torch.qint8)
        nested = torch.nested.nested_tensor([self.x, self.x], layout=torch.jagged)
        for tensor, kind in (
            (self.x.to_sparse(), "a tensor of layout torch.sparse_coo"),
            (self.x.to_sparse_csr(), "a tensor of layout torch.sparse_csr"),
            (quantized, "a quantized tensor"),
            (nested, "a nested tensor"),
        ):
            self.refused(f"x is {kind}; it must be a dense one, of layout torch.strided",
                         lambda tensor=tensor: functional.layer_norm(tensor, self.weight, self.weight))  # fmt: skip
        if torch.backends.mkldnn.is_available():
            with self.assertRaisesRegex(errors.InvalidArgumentError, "x is a tensor of layout torch._mkldnn"):
                functional.layer_norm(self.x.to_mkldnn(), self.weight, self.weight)
        q = self.given["q"].to_sparse()
        self.refused("q is a tensor of layout torch.sparse_coo; it must be a dense one, of layout torch.strided",
                     lambda: self.attention(q=q))  # fmt: skip

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
            ((2, 5, 16), "dense.shape[0] is 2; it must be B = 3, as in seq_offsets"),
            ((4, 0, 16), "dense.shape[0] is 4; it must be B = 3, as in seq_offsets"),
            ((3, 5, 0), f"dense.shape[2] is 0; {width}"),
            ((3, 5, 16385), f"dense.shape[2] is 16385; {width}"),
            ((3, 5), "dense has rank 2, shape (3, 5); it must be (B, max_len, D)"),
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
        for kind in (torch.complex64, torch.bool, torch.int64, torch.float8_e4m3fn):
            name = str(kind).removeprefix("torch.")
            wrong = self.weight.to(kind)
            sentence = f"has dtype {name}; it must be bf16, fp16, fp32 or fp64"
            self.refused(f"weight {sentence}", lambda w=wrong: functional.layer_norm(self.x, w, self.weight))
            self.refused(f"bias {sentence}", lambda w=wrong: functional.layer_norm(self.x, self.weight, w))
            self.refused(
                f"norm_weight {sentence}",
                lambda w=wrong: tzrec.hstu_compute_uqvk(
                    self.x, w, self.weight, 1e-5, 2, 8, 8, torch.ones(16, 64), torch.ones(64)
                ),
            )

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
            ("values.shape[0] is 8; it must be a multiple of max_len_left + max_len_right = 5",
             lambda: functional.split_2D_jagged(5, x, max_len_left=2, max_len_right=3)),
            ("values.shape[0] is 8; it must be 0, as many rows as sequences of no rows have",
             lambda: functional.split_2D_jagged(5, x, max_len_left=0, max_len_right=0)),
            ("total_len_right is 9; it must be from 0 to values.shape[0] = 8",
             lambda: functional.split_2D_jagged(8, x, None, 9, offsets_left=offsets, offsets_right=offsets)),
            ("values_left.shape[0] is 7; it must be a multiple of max_len_left = 2",
             lambda: functional.concat_2D_jagged(
                 values_left=x[:7], values_right=x[:6], max_len_left=2, max_len_right=3)),
            ("values_left.shape[0] is 8; it must be 4, as many rows as the sequences of values_right have",
             lambda: functional.concat_2D_jagged(
                 values_left=x, values_right=x[:6], max_len_left=2, max_len_right=3)),
            ("seed is True; it must be an integer, or a tensor (1) of int64",
             lambda: functional.hstu_norm_mul_dropout(
                 x, x, self.weight, self.weight, 1e-5, 0.5, True, seed=True)),
            ("seed is 9223372036854775808; it must be an integer of 64 bits",
             lambda: functional.hstu_norm_mul_dropout(
                 x, x, self.weight, self.weight, 1e-5, 0.5, True, seed=2**63)),
            ("num_heads is -1; allowed: an integer from 1 to 1024 (number of attention heads H)",
             lambda: half(heads=-1)),
            ("num_heads is -1", lambda: half(heads=-1, prefill=True)),
            ("norm_eps is -1", lambda: half(eps=-1.0)),
            ("attn_alpha is inf", lambda: half(alpha=float("inf"))),
            ("attn_alpha is inf", lambda: half(alpha=float("inf"), prefill=True)),
            ("norm_weight.shape[0] is 8", lambda: uqvk(norm_weight=self.weight[:8])),
            ("norm_eps is nan", lambda: uqvk(norm_eps=float("nan"))),
            ("num_heads is 2000", lambda: uqvk(num_heads=2000)),
            ("linear_dim is 7", lambda: output(tzrec, linear_dim=7)),
            ("norm_eps is -1", lambda: output(generative_recommenders, norm_eps=-1.0)),
            ("mul_u_activation_type is", lambda: output(generative_recommenders, mul_u_activation_type="relu")),
            ("delta_q has rank 2", lambda: functional.delta_hstu_mha(
                8, 0.25, self.given["q"][:3, 0], self.given["k"], self.given["v"], offsets)),
            ("max_attn_len is -7", lambda: self.attention(max_attn_len=-7)),
            ("input.shape[0] is 1; it must be L = 8, as in mat1",
             lambda: functional_layer.addmm(torch.ones(1, 24), x, torch.ones(16, 24))),
            ("bias.shape[0] is 1; it must be B = 3, as in dense",
             lambda: functional_layer.jagged_dense_bmm_broadcast_add(8, offsets, x, torch.ones(3, 16, 8),
                                                                     torch.ones(1, 8))),
        ):  # fmt: skip
            with self.subTest(words), self.assertRaises(errors.Error) as raised:
                call()
            self.assertTrue(str(raised.exception).startswith(words), str(raised.exception))

    def test_flags_and_texts(self):
        for value in ("no", None, 2, 1.0):
            self.refused(
                f"causal is {value!r}; it must be True or False", lambda value=value: self.attention(causal=value)
            )
        given = dict(self.given, alpha=1.0)
        for recorded in (False, True):
            given["q"].requires_grad_(recorded)
            for name in ("causal", "full_mask"):
                self.refused(
                    f"{name} is None; it must be True or False",
                    lambda name=name, given=given: torch.ops.hstujit.hstu_attention(**given, **{name: None}),
                )
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^time_bucket_fn is 3; it must be a text$"):
            offsets = self.given["seq_offsets"]
            tables = self.x, self.x, offsets, offsets.diff(), torch_cases.tensor(8, 16), torch.arange(8)
            functional.add_timestamp_positional_embeddings(1.0, 8, 0, *tables, None, False, 3)

        x = torch_cases.tensor(8, 16)
        self.refused("concat_ux is 'yes'; it must be True or False", lambda: tzrec.hstu_compute_output(
            x, x, x, x[0], x[0], 1e-5, x, 2, 8, 0.0, False, "yes", False, True))  # fmt: skip

    def test_all_that_is_wrong_is_said(self):
        sentence = "max_seq_len is 8.5; it must be an integer\nalpha is 'x'; it must be a number"
        self.refused(sentence, lambda: self.attention(max_seq_len=8.5, alpha="x"))

    def test_numbers_of_other_kinds_are_taken(self):
        expected = self.attention(alpha=0.5)
        for length, alpha in (
            (numpy.int64(8), numpy.float32(0.5)),
            (numpy.array(8), fractions.Fraction(1, 2)),
            (torch.tensor(8), torch.tensor(0.5)),
            (torch.tensor(8, dtype=torch.uint8), 0.5),
        ):
            flag = numpy.bool_(True)
            self.assertTrue(torch.equal(self.attention(max_seq_len=length, alpha=alpha, causal=flag), expected))

    def test_what_is_no_tensor_is_named_in_one_line(self):
        self.refused("x is a numpy.ndarray; it must be a tensor",
                     lambda: functional.layer_norm(self.x.numpy(), self.weight, self.weight))  # fmt: skip
        self.refused("num_targets is [1, 0, 2]; it must be a tensor", lambda: self.attention(num_targets=[1, 0, 2]))

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

    def test_flags_of_a_configuration(self):
        flags = [name for name, kind in STULayerConfig.__annotations__.items() if kind == "bool"]
        self.assertIn("recompute_attn", flags)
        for name in flags:
            for value in ("no", None, 1):
                sentence = f"{name} is {value!r}; it must be True or False"
                self.refused(sentence, lambda name=name, value=value: STULayerConfig(**self.SIZES, **{name: value}))

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
        for config, kind in ((self.SIZES, "a dict"), (None, "a NoneType"), ([], "a list")):
            sentence = f"config is {kind}; it must be an STULayerConfig: it has no embedding_dim"
            self.refused(sentence, lambda config=config: STULayer(config))

    def test_numbers_of_a_call(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        x, offsets = torch_cases.tensor(8, 32), torch_cases.offsets()
        for module in (layer, STUStack([layer])):
            for value in (torch.tensor(40.7), 40.0, True, "40", None):
                sentence = f"max_seq_len is {value!r}; it must be an integer"
                self.refused(sentence, lambda module=module, value=value: module(x, offsets.diff(), offsets, value))
            module(x, offsets.diff(), offsets, torch.tensor(40))

    def test_types_of_instances(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        reals = "it must be torch.bfloat16, torch.float16 or torch.float32"
        for change, sentence in (
            ({"dtype": "bfloat16"}, f"dtype is 'bfloat16'; {reals}"),
            ({"dtype": torch.float64}, f"dtype is torch.float64; {reals}"),
            ({"weight_dtype": torch.int32}, f"weight_dtype is torch.int32; {reals}"),
            ({"offsets_dtype": torch.int16}, "offsets_dtype is torch.int16; it must be torch.int32 or torch.int64"),
            ({"num_targets": "yes"}, "num_targets is 'yes'; it must be True, False or a count of generated targets"),
            ({"num_targets": -1}, "num_targets is -1; it must be True, False or a count of generated targets"),
            ({"weight_dtype": 0}, f"weight_dtype is 0; {reals}"),
            ({"name": 3}, "name is 3; it must be a text"),
        ):
            for module in (layer, STUStack([layer])):
                self.refused(sentence, lambda module=module, change=change: module.instances(training=16, **change))

    def test_lengths_of_instances(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        for kind in ("training", "inference", "prefill", "cached_forward"):
            for value in (512.0, None, True, "512", "", b"8", [8.0], [[8]], [8, 0], 2**28 + 1, torch.tensor(8.5)):
                sentence = f"{kind} is {value!r}; it must be lengths, integers from 1 to 268435456"
                self.refused(sentence, lambda kind=kind, value=value: layer.instances(**{kind: value}))
        expected = layer.instances(training=[8, 16])
        for value in (numpy.array([8, 16]), torch.tensor([8, 16]), [numpy.int64(8), 16], range(8, 17, 8)):
            self.assertEqual(layer.instances(training=value), expected)
        for value in (numpy.int64(8), torch.tensor(8)):
            self.assertEqual(layer.instances(training=value), layer.instances(training=8))

    def test_names_of_instances_are_those_of_a_config(self):
        layer = STULayer(STULayerConfig(**self.SIZES))
        stack = STUStack([layer])
        allowed = "allowed: letters, digits, '_', '-' and '.', at most 100, and at least one of them no '.'"
        for name in ("a b", "a; b", "a/b", "\u00e9", "a\nb", "\ud800", "x" * 95):
            for module, begin in ((layer, name), (stack, f"{name}-0")):
                sentence = f"name is {begin!r}, so an instance has the name {begin + '-inference'!r}; {allowed}"
                self.refused(sentence, lambda module=module, name=name: module.instances(inference=8, name=name))
        for name in ("", "a.b_c-1", "x" * 80):
            hstujit.Config(layer.instances(training=8, inference=8, prefill=8, cached_forward=8, name=name))
            hstujit.Config(stack.instances(training=8, inference=8, prefill=8, cached_forward=8, name=name))

    def test_what_a_module_is_made_of(self):
        with self.assertRaisesRegex(
            TypeError, "^STULayer: 'embedding_dim' is no argument: it may be a field of config; "
        ):
            STULayer(embedding_dim=64)
        with self.assertRaisesRegex(
            TypeError, "^STULayer: missing a required argument: 'config'; it takes config, is_"
        ):
            STULayer()
        layer = STULayer(STULayerConfig(**self.SIZES))
        self.refused("stu_list is a hstujit.torch.stu.STULayer; it must be a list of STULayer", lambda: STUStack(layer))
        self.refused("stu_list[1] is a torch.nn.modules.linear.Linear; it must be a STULayer",
                     lambda: STUStack([layer, torch.nn.Linear(2, 2)]))  # fmt: skip
        for none in ([], (), {}, iter([])):
            self.refused("stu_list has no layers; it must have at least one", lambda none=none: STUStack(none))
        wide = STULayer(STULayerConfig(**{**self.SIZES, "embedding_dim": 64}))
        self.refused("stu_list[1] has the embedding_dim 64; it must be 32, as that of stu_list[0]",
                     lambda: STUStack([layer, wide, layer]))  # fmt: skip

    def test_whether_a_module_is_for_inference(self):
        config = STULayerConfig(**self.SIZES)
        for make in (STULayer, lambda config, flag: STUStack([STULayer(config)], flag)):
            for value in ("x", None, 2, 1.0):
                sentence = f"is_inference is {value!r}; it must be True or False"
                self.refused(sentence, lambda make=make, value=value: make(config, value))
            for value in (True, 1, numpy.bool_(True)):
                self.assertIs(make(config, value).is_inference, True)

    def test_a_layer_shows_its_configuration(self):
        layer = STULayer(STULayerConfig(**self.SIZES, causal=False))
        shown = "embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, causal=False"
        self.assertEqual(repr(layer), f"STULayer({shown})")
        self.assertIn(shown, repr(STUStack([layer])))

    def test_a_prefill_under_autocast(self):
        layer, offsets = STULayer(STULayerConfig(**self.SIZES)).eval(), torch_cases.offsets()
        x, lengths = torch_cases.tensor(8, 32), offsets.diff()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            layer(x, lengths, offsets, 8, None, 8, lengths)
        with torch.no_grad():
            self.refused(
                "delta_x has dtype fp32; it must be bf16, which the prefill computed in: that of its x, or of its "
                "autocast", lambda: layer.cached_forward(x[:3]),
            )  # fmt: skip

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
        """What ``stu_layer`` and ``cached_stu_layer`` name is named so, or otherwise, by a module."""
        forward = {*hstujit.torch._layer_config.NAMES, "x", "x_offsets", "num_targets", "max_seq_len"}
        cache = {"k_cache", "v_cache", "kv_caching_offsets", "max_delta_len"}
        own = cache | {
            "eps",
            "seed",
            "seed_tensor",
            "offset",
            "rab",
            "attn_scale",
            "scaling_seqlen",
        }  # which no caller gives
        for name in ("stu_layer", "cached_stu_layer"):
            for argument in getattr(torch.ops.hstujit, name).default._schema.arguments:
                if not argument.kwarg_only:
                    self.assertIn(argument.name, forward | own)
