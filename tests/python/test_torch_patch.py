"""The functions with public names, and their places in packages that have those names."""

import importlib
import unittest

from torch_support import import_scratch_packages, torch

from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch
    from hstujit.torch import functional, functional_layer, generative_recommenders, tzrec

# Stand-ins for the packages: modules, and signatures of some functions as those have them.
OPERATORS = {
    "hstu_attention": [
        "hstu_mha(max_seq_len, alpha, q, k, v, seq_offsets, causal=True, dropout_pr=0.0, training=True,"
        " num_targets=None, max_attn_len=0, contextual_seq_len=0, min_full_attn_seq_len=0, sort_by_length=False,"
        " kernel='pytorch', enable_tma=False)",
        "delta_hstu_mha(max_seq_len, alpha, delta_q, k, v, seq_offsets, num_targets=None, max_attn_len=0,"
        " contextual_seq_len=0, kernel='pytorch', enable_tma=False)",
    ],
    "hstu_compute": ["hstu_compute_uqvk(x, norm_weight)"],
    "jagged_tensors": [
        "concat_2D_jagged(max_seq_len, values_left, values_right, max_len_left=None, max_len_right=None,"
        " offsets_left=None, offsets_right=None, kernel='pytorch')",
        "split_2D_jagged(max_seq_len, values, total_len_left=None, total_len_right=None, max_len_left=None,"
        " max_len_right=None, offsets_left=None, offsets_right=None, kernel='pytorch')",
        "hstu_split_l2_embeddings(max_seq_len, x, prefix_offsets, l2_offsets, contextual_seq_len, kernel='pytorch')",
        "hstu_concat_l2_embeddings(max_prefix_len, prefix_x, prefix_offsets, max_l2_len, l2_x, l2_offsets,"
        " contextual_seq_len, kernel='pytorch')",
        "jagged_dense_bmm_broadcast_add(max_seq_len, seq_offsets, jagged, dense, bias, kernel='pytorch')",
    ],
    "layer_norm": [
        "layer_norm(weight, x, bias, eps=1e-05, kernel='pytorch')",  # not in the order of the others
        "swish_layer_norm(x, weight, bias, eps=1e-05, mode='fast')",  # with an argument that nobody knows
    ],
    "mm": ["addmm(input, mat1, mat2, kernel=Kernel.PYTORCH)", "bmm(mat1, mat2)"],
}


KERNELS = """import enum


class Kernel(enum.Enum):
    TRITON = 1
    PYTORCH = 2


"""


def write_package(folder):
    operators = folder / "generative_recommenders" / "ops"
    operators.mkdir(parents=True)
    for init in (operators.parent, operators):
        (init / "__init__.py").write_text("")
    for module, signatures in OPERATORS.items():
        text = "".join(f"def {signature}:\n    return 'theirs'\n\n\n" for signature in signatures)
        (operators / f"{module}.py").write_text(KERNELS + text)
    (operators.parent / "model.py").write_text("from generative_recommenders.ops.hstu_attention import hstu_mha\n")


@unittest.skipUnless(torch, "PyTorch is not installed")
class Patch(unittest.TestCase):
    def setUp(self):
        import_scratch_packages(self, write_package, ("generative_recommenders",))
        self.addCleanup(hstujit.torch.unpatch)
        self.model = importlib.import_module("generative_recommenders.model")
        self.attention = importlib.import_module("generative_recommenders.ops.hstu_attention")
        self.jagged = importlib.import_module("generative_recommenders.ops.jagged_tensors")
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        self.arguments = {"max_seq_len": length, "alpha": alpha, "q": q, "k": k, "v": v, "seq_offsets": offsets}

    def test_what_is_replaced_what_is_left_and_why(self):
        report = hstujit.torch.patch("generative_recommenders")
        self.assertEqual(len(report.replaced), 8)
        self.assertIn("generative_recommenders.ops.hstu_attention.hstu_mha", report.replaced)
        reasons = {name.rpartition(".")[2]: reason for name, reason in report.left.items()}
        self.assertIn("no such operator", reasons["bmm"])
        self.assertIn("does not take norm_bias", reasons["hstu_compute_uqvk"])
        self.assertIn("another order", reasons["layer_norm"])
        self.assertIn("mode, which hstujit does not know", reasons["swish_layer_norm"])
        self.assertIn("no such module", reasons["add_timestamp_positional_embeddings"])
        for name in (*report.replaced, *report.left):
            self.assertIn(name, str(report))

    def test_modules_that_imported_a_function_by_name_have_ours(self):
        hstujit.torch.patch("generative_recommenders")
        expected = functional.hstu_mha(**self.arguments)
        self.assertTrue(torch.equal(self.model.hstu_mha(**self.arguments), expected))
        self.assertTrue(torch.equal(self.model.hstu_mha(*self.arguments.values(), True, kernel=None), expected))
        self.assertIs(self.model.hstu_mha, self.attention.hstu_mha)

    def test_twice_is_once_and_unpatch_puts_all_back(self):
        first = hstujit.torch.patch("generative_recommenders")
        self.assertEqual(hstujit.torch.patch("generative_recommenders").replaced, first.replaced)
        self.assertEqual(set(hstujit.torch.unpatch("generative_recommenders")), set(first.replaced))
        self.assertEqual(self.model.hstu_mha(**self.arguments), "theirs")
        self.assertEqual(self.attention.hstu_mha(**self.arguments), "theirs")
        self.assertEqual(hstujit.torch.unpatch(), ())

    def test_what_has_no_kernel_here_goes_to_the_package(self):
        hstujit.torch.patch("generative_recommenders")
        q = self.arguments["q"]
        narrow = {"q": q[..., :12], "k": q[..., :12]}
        for change in ({"dropout_pr": 0.1}, narrow, {"q": q.double()}, {"q": q.to("meta")}):
            self.assertEqual(self.model.hstu_mha(**{**self.arguments, **change}), "theirs")
        inference = self.model.hstu_mha(**self.arguments, dropout_pr=0.1, training=False)
        self.assertEqual(inference.shape, (8, 2, 8))

    def test_calls_are_counted_with_the_reason_why_they_went_to_the_package(self):
        report = hstujit.torch.patch("generative_recommenders")
        self.model.hstu_mha(**self.arguments)
        for change in ({"dropout_pr": 0.1}, {}, {"q": self.arguments["q"].double()}):
            self.model.hstu_mha(**{**self.arguments, **change})
        calls = report.calls["generative_recommenders.ops.hstu_attention.hstu_mha"]
        self.assertEqual(calls.ours, 2)
        self.assertEqual(calls.theirs, {"dropout of attention": 1, "fp64": 1})
        again = hstujit.torch.patch("generative_recommenders")
        self.assertIs(again.calls["generative_recommenders.ops.hstu_attention.hstu_mha"], calls)

    def test_a_kernel_that_is_kept_stays_with_the_package(self):
        report = hstujit.torch.patch("generative_recommenders", keep=("PYTORCH",))
        addmm = importlib.import_module("generative_recommenders.ops.mm")
        matrices = [torch_cases.tensor(*shape).half() for shape in ((24,), (8, 16), (16, 24))]
        self.assertEqual(addmm.addmm(*matrices), "theirs")
        self.assertEqual(addmm.addmm(*matrices, addmm.Kernel.TRITON).shape, (8, 24))
        self.assertEqual(addmm.addmm(*(m.float() for m in matrices), addmm.Kernel.TRITON).dtype, torch.float32)
        self.assertEqual(addmm.addmm(*(m.double() for m in matrices), addmm.Kernel.TRITON), "theirs")
        self.assertEqual(addmm.addmm(matrices[0][:9], matrices[1], matrices[2][:, :9], None), "theirs")
        calls = report.calls["generative_recommenders.ops.mm.addmm"]
        self.assertEqual((calls.ours, calls.theirs["kernel PYTORCH is kept"]), (2, 1))
        self.assertEqual(len(calls.theirs), 3)

    def test_rows_with_a_prefix(self):
        hstujit.torch.patch("generative_recommenders")
        x, offsets, others = torch_cases.tensor(14, 4), torch_cases.offsets(), torch_cases.offsets(0, 2, 5, 6)
        prefix, rest = self.jagged.hstu_split_l2_embeddings(9, x, offsets, others, 1)
        self.assertTrue(torch.equal(prefix[:3], x[1:4]))
        self.assertTrue(torch.equal(rest[:2], x[[0, 4]]))
        self.assertTrue(torch.equal(self.jagged.hstu_concat_l2_embeddings(5, prefix, offsets, 3, rest, others, 1), x))
        together = self.jagged.concat_2D_jagged(9, prefix, rest, 5, 3, offsets, others)
        self.assertTrue(torch.equal(self.jagged.split_2D_jagged(9, together, 8, 6, 5, 3, offsets, others)[0], prefix))

    def test_compiled_and_traced(self):
        hstujit.torch.patch("generative_recommenders")
        attention = self.model.hstu_mha
        expected = attention(**self.arguments)

        class Model(torch.nn.Module):
            def forward(self, q, k, v, seq_offsets):
                return attention(8, 0.25, q, k, v, seq_offsets)

        inputs = [self.arguments[name] for name in ("q", "k", "v", "seq_offsets")]
        torch._dynamo.reset()
        compiled = torch.compile(Model(), fullgraph=True, backend="eager")
        self.assertTrue(torch.equal(compiled(*inputs), expected))
        self.assertTrue(torch.equal(torch.fx.symbolic_trace(Model())(*inputs), expected))

    def test_mistakes(self):
        with self.assertRaisesRegex(errors.InvalidArgumentError, "package is 'recsys'.*'tzrec'"):
            hstujit.torch.patch("recsys")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "package is 'tzrecs', did you mean 'tzrec'"):
            hstujit.torch.patch("tzrecs")
        with self.assertRaisesRegex(ModuleNotFoundError, "tzrec"):
            hstujit.torch.patch("tzrec")


@unittest.skipUnless(torch, "PyTorch is not installed")
class Functions(unittest.TestCase):
    def test_arguments_of_other_types_and_layouts(self):
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        expected = functional.hstu_mha(length, alpha, q, k, v, offsets, num_targets=torch.tensor([1, 0, 2]))
        apart = q.repeat_interleave(2, -1)[..., ::2]
        targets = torch.tensor([1, 0, 2], dtype=torch.int32)
        out = functional.hstu_mha(length, alpha, apart, k, v, offsets, num_targets=targets)
        self.assertTrue(torch.equal(out, expected))

    def test_what_is_not_there_is_refused(self):
        arguments = dict(zip(("q", "k", "v", "seq_offsets", "max_seq_len", "alpha"), next(torch_cases.cases())[2]))
        with self.assertRaisesRegex(errors.UnsupportedError, "dropout_pr is 0.5"):
            functional.hstu_mha(**arguments, dropout_pr=0.5)
        with self.assertRaisesRegex(errors.UnsupportedError, "attn_func"):
            functional.hstu_mha(**arguments, attn_func=torch.ones(1, 3, 8))

    def test_tensors_of_another_rank_or_none(self):
        x, weight = torch_cases.tensor(4, 16), torch_cases.tensor(16)
        offsets = torch.tensor([0, 4])
        for words, call in (
            ("dense has rank 2, shape (4, 16); it must be (B, max_len, D)",
             lambda: functional.dense_to_jagged(x, offsets)),
            ("num_heads is 0; it must be at least 1",
             lambda: functional.hstu_norm_mul_dropout(x, x, weight, weight, 1e-5, 0.0, False, group_norm=True,
                                                      num_heads=0)),
            ("linear_dim is 3; it must be 8, D / num_heads",
             lambda: functional.hstu_norm_mul_dropout(x, x, weight, weight, 1e-5, 0.0, False, group_norm=True,
                                                      num_heads=2, linear_dim=3)),
            ("x is None; it must be a tensor", lambda: functional.layer_norm(None, weight, weight, 1e-5)),
            ("lengths is None; it must be a tensor", lambda: functional.complete_cumsum(None)),
            ("lengths is 3; it must be a tensor", lambda: functional.complete_cumsum(3)),
            ("x has rank 0, shape ()", lambda: functional.layer_norm(x[0, 0], weight, weight, 1e-5)),
            ("jagged has rank 0, shape ()", lambda: functional.jagged_dense_broadcast_add(4, offsets, x[0, 0], x)),
        ):  # fmt: skip
            with self.assertRaises(errors.InvalidArgumentError) as raised:
                call()
            self.assertIn(words, str(raised.exception))
        q, k, v, *_ = next(torch_cases.cases())[2]
        none = functional.delta_hstu_mha(8, 0.25, q[:0], k[:0], v[:0], torch.tensor([0]))
        self.assertEqual(none.shape[0], 0)

    def test_the_last_rows_are_those_of_all(self):
        q, k, v, _, length, alpha = next(torch_cases.cases())[2]
        offsets = torch.tensor([0, 3, 8])
        every = functional.hstu_mha(length, alpha, q, k, v, offsets)
        last = functional.delta_hstu_mha(length, alpha, q[[1, 2, 6, 7]], k, v, offsets)
        torch.testing.assert_close(last, every[[1, 2, 6, 7]])

    def test_norms_agree_with_pytorch_also_of_more_dimensions(self):
        x, weight, bias = torch_cases.tensor(2, 3, 16), torch_cases.tensor(16, seed=1), torch_cases.tensor(16, seed=2)
        norm = torch.nn.functional.layer_norm(x, (16,), weight, bias)
        torch.testing.assert_close(functional.layer_norm(x, weight, bias), norm, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            functional.swish_layer_norm(x, weight, bias), x * norm.sigmoid(), rtol=1e-4, atol=1e-5
        )
        root = torch.nn.functional.rms_norm(x, (16,), weight, 1e-5)
        torch.testing.assert_close(functional.rms_norm(x, weight), root, rtol=1e-4, atol=1e-5)
        self.assertEqual(functional.layer_norm(x.bfloat16(), weight.half(), bias.half()).dtype, torch.bfloat16)

    def test_two_dense_sides(self):
        left, right = torch_cases.tensor(6, 4), torch_cases.tensor(3, 4)
        together = tzrec.concat_2D_jagged(left, right, 2, 1)
        self.assertTrue(torch.equal(together.view(3, 3, 4)[:, :2].reshape(6, 4), left))
        back = functional.split_2D_jagged(3, together, max_len_left=2, max_len_right=1)
        self.assertTrue(torch.equal(back[0], left) and torch.equal(back[1], right))
        for lengths, name in (((-1, -1), "max_len_left"), ((2, -1), "max_len_right")):
            sentence = f"{name} is -1; it must be at least 0"
            with self.assertRaisesRegex(errors.InvalidArgumentError, sentence):
                tzrec.concat_2D_jagged(left, right, *lengths, None, None)
            with self.assertRaisesRegex(errors.InvalidArgumentError, sentence):
                functional.split_2D_jagged(3, together, None, None, *lengths, None, None)

    def test_dropout_follows_from_the_seed_and_from_training(self):
        x, u = torch_cases.tensor(64, 16), torch_cases.tensor(64, 16, seed=1)
        norm = (torch.ones(16), torch.zeros(16), 1e-5)
        outs = [functional.hstu_norm_mul_dropout(x, u, *norm, 0.5, True, seed=seed) for seed in (1, 1, 2)]
        self.assertTrue(torch.equal(outs[0], outs[1]))
        self.assertFalse(torch.equal(outs[0], outs[2]))
        torch.manual_seed(3)
        drawn = functional.hstu_norm_mul_dropout(x, u, *norm, 0.5, True)
        self.assertAlmostEqual((drawn == 0).float().mean().item(), 0.5, delta=0.1)
        self.assertFalse((functional.hstu_norm_mul_dropout(x, u, *norm, 0.5, False) == 0).any())
        for ratio in (-0.5, 1.5, float("nan")):
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"dropout_ratio is {ratio}; it must be a number"):
                functional.hstu_norm_mul_dropout(x, u, *norm, ratio, True)
        self.assertEqual(functional.hstu_norm_mul_dropout(x, u, *norm, 0.0, True, concat_ux=True).shape, (64, 48))
        with self.assertRaisesRegex(errors.InvalidArgumentError, "linear_dim is 3; it must be 8"):
            heads = torch.ones(2), torch.zeros(2), 1e-5
            functional.hstu_norm_mul_dropout(x, u, *heads, 0, False, group_norm=True, num_heads=2, linear_dim=3)

    @staticmethod
    def timestamp_embeddings(function, x, at, of_age, targets, **options):
        offsets, times = torch_cases.offsets(), torch.tensor([100, 400, 7000, 50, 90, 1000, 1500, 9000])
        return function(
            alpha=22.6,
            max_seq_len=8,
            max_contextual_seq_len=1,
            position_embeddings_weight=at,
            timestamp_embeddings_weight=of_age,
            seq_offsets=offsets,
            seq_lengths=offsets.diff(),
            seq_embeddings=x,
            timestamps=times[: len(x)],
            num_targets=targets,
            interleave_targets=False,
            **options,
        )

    def test_embeddings_are_rounded_as_the_packages_round_them(self):
        """To the last bit, where the row and the tables nearly cancel. Tables of one row need no index."""
        for dtype in (torch.bfloat16, torch.float16):
            x = torch_cases.tensor(8, 64).to(dtype).requires_grad_()
            at, of_age = torch_cases.tensor(1, 64, seed=1), torch_cases.tensor(1, 64, seed=2)
            at = (at - (22.6 * x[:1].detach()).float()).requires_grad_()
            for tables in ((at, of_age), (at.detach().to(dtype), of_age.to(dtype))):
                expected = x * 22.6 + (tables[0] + tables[1]).to(dtype)
                once = functional.add_timestamp_positional_embeddings
                self.assertFalse(torch.equal(self.timestamp_embeddings(once, x, *tables, None), expected))
                asked = self.timestamp_embeddings(once, x, *tables, None, round_embeddings=True)
                self.assertTrue(torch.equal(asked, expected))
                for package in (generative_recommenders, tzrec):
                    ours = package.add_timestamp_positional_embeddings
                    out = self.timestamp_embeddings(ours, x, *tables, None)
                    self.assertTrue(torch.equal(out, expected))
                    exact = self.timestamp_embeddings(ours, x, *tables, None, round_embeddings=False)
                    self.assertFalse(torch.equal(exact, expected))
            out = self.timestamp_embeddings(tzrec.add_timestamp_positional_embeddings, x, at, of_age, None)
            theirs = x * 22.6 + (at.expand(8, 64) + of_age).to(dtype)
            dout = torch_cases.tensor(8, 64, seed=3).to(dtype)
            found, expected = (torch.autograd.grad(y, (x, at), dout) for y in (out, theirs))
            self.assertTrue(torch.equal(found[0], expected[0]))
            torch.testing.assert_close(found[1], expected[1])

    def test_more_targets_than_rows_are_taken_as_the_packages_take_them(self):
        """As many as there are rows, in int32 too. What is no number of targets is refused as before."""
        x, at, of_age = torch_cases.tensor(8, 16), torch_cases.tensor(9, 16, seed=1), torch_cases.tensor(4, 16, seed=2)
        rows = torch_cases.offsets().diff()
        for package in (generative_recommenders, tzrec):
            ours = package.add_timestamp_positional_embeddings
            expected = self.timestamp_embeddings(ours, x, at, of_age, rows)
            for more in (rows + 3, (rows + 1).int()):
                self.assertTrue(torch.equal(self.timestamp_embeddings(ours, x, at, of_age, more), expected))
                with self.assertRaisesRegex(errors.InvalidArgumentError, "num_targets"):
                    self.timestamp_embeddings(ours, x, at, of_age, more, clamp_targets=False)
            for wrong in (rows - 9, rows[1:], rows.float()):
                with self.assertRaisesRegex(errors.InvalidArgumentError, "num_targets"):
                    self.timestamp_embeddings(ours, x, at, of_age, wrong)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "num_targets"):
            self.timestamp_embeddings(functional.add_timestamp_positional_embeddings, x, at, of_age, rows + 3)

    def test_padded_and_back(self):
        values, offsets = torch_cases.tensor(8, 4).requires_grad_(), torch_cases.offsets()
        dense = functional.jagged_to_padded_dense(values, offsets, 5, 2.0)
        self.assertEqual(dense.shape, (3, 5, 4))
        self.assertTrue((dense[1] == 2).all())
        back = functional.dense_to_jagged(dense, offsets)
        self.assertTrue(torch.equal(back, values))
        back.sum().backward()
        self.assertTrue(torch.equal(values.grad, torch.ones(8, 4)))
        self.assertEqual(functional.complete_cumsum(torch.tensor([3, 0, 5])).tolist(), [0, 3, 3, 8])

    def test_one_row_for_all_of_a_sequence(self):
        jagged, dense = torch_cases.tensor(8, 4).requires_grad_(), torch_cases.tensor(3, 4).requires_grad_()
        out = functional.jagged_dense_broadcast_add(8, torch_cases.offsets(), jagged, dense)
        torch.testing.assert_close(out, jagged + dense.repeat_interleave(torch.tensor([3, 0, 5]), 0))
        out.sum().backward()
        self.assertTrue(torch.equal(jagged.grad, torch.ones(8, 4)))
        self.assertEqual(dense.grad[:, 0].tolist(), [3, 0, 5])


def plain(function, *tensors, **more):
    """A result and the gradients of all tensors."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    results = function(*leaves, **more)
    results = [r for r in (results if isinstance(results, tuple) else (results,)) if r is not None]
    sum((result.float() * torch_cases.tensor(*result.shape, seed=9)).sum() for result in results).backward()
    return [*results, *(leaf.grad for leaf in leaves)]


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layer(unittest.TestCase):
    """Functions of a layer, with their gradients, against plain PyTorch of the same data type."""

    HEADS = {"num_heads": 2, "attn_dim": 16, "hidden_dim": 8}
    DTYPE, TOLERANCE = (torch.float16, 2e-2) if torch else (None, 0)

    def agree(self, ours, expected):
        for result, wanted in zip(ours, expected, strict=True):
            self.assertEqual(result.dtype, wanted.dtype)
            torch.testing.assert_close(result, wanted, rtol=self.TOLERANCE, atol=self.TOLERANCE)

    @staticmethod
    def uqvk(x, weight, bias, uvqk_weight, uvqk_bias):
        normed = torch.nn.functional.layer_norm(x.float(), x.shape[1:], weight.float(), bias.float(), 1e-6)
        u, v, q, k = torch.addmm(uvqk_bias, normed.to(x.dtype), uvqk_weight).split([16, 16, 32, 32], 1)
        heads = q.view(-1, 2, 16), k.view(-1, 2, 16), v.view(-1, 2, 8)
        return torch.nn.functional.silu(u), *heads

    def projection(self):
        tensors = (torch_cases.tensor(*s, seed=i) for i, s in enumerate(((8, 16), (16,), (16,), (16, 96), (96,))))
        return [0.3 * tensor.to(self.DTYPE) for tensor in tensors]

    def test_addmm_of_a_vector_a_matrix_and_a_transposed_one(self):
        mat1, mat2 = torch_cases.tensor(8, 16).to(self.DTYPE), torch_cases.tensor(24, 16, seed=1).to(self.DTYPE)
        for added in (torch_cases.tensor(24, seed=2).to(self.DTYPE), torch_cases.tensor(8, 24, seed=2).to(self.DTYPE)):
            for turned in (mat2.t(), mat2.t().contiguous()):
                expected = plain(torch.addmm, added, mat1, turned)
                self.agree(plain(functional_layer.addmm, added, mat1, turned), expected)
        sliced = torch_cases.tensor(8, 32).to(self.DTYPE)[:, 3:19]
        expected = torch.addmm(added, sliced, mat2.t())
        torch.testing.assert_close(
            functional_layer.addmm(added, sliced, mat2.t()), expected, rtol=self.TOLERANCE, atol=self.TOLERANCE
        )

    def test_rows_times_a_matrix_of_their_sequence(self):
        jagged, offsets, rows = torch_cases.tensor(8, 16).to(self.DTYPE), torch_cases.offsets(), torch.tensor([3, 0, 5])
        dense = 0.3 * torch_cases.tensor(3, 24, 16, seed=1).to(self.DTYPE)

        def expected(jagged, dense, bias):
            products = [part @ matrix for part, matrix in zip(jagged.split(rows.tolist()), dense, strict=True)]
            return torch.cat(products) + (bias if bias.shape[0] == 8 else bias.repeat_interleave(rows, 0))

        for elementwise in (False, True):
            bias = torch_cases.tensor(8 if elementwise else 3, 24, seed=2).to(self.DTYPE)
            for turned in (dense.mT, dense.mT.contiguous()):
                ours = plain(
                    lambda *tensors, elementwise=elementwise: functional_layer.jagged_dense_bmm_broadcast_add(
                        8, offsets, *tensors, elementwise=elementwise
                    ),
                    jagged, turned, bias,
                )  # fmt: skip
                self.agree(ours, plain(expected, jagged, turned, bias))

    def test_compute_uqvk(self):
        x, weight, bias, uvqk_weight, uvqk_bias = self.projection()
        expected = plain(self.uqvk, x, weight, bias, uvqk_weight, uvqk_bias)

        def ours(x, weight, bias, uvqk_weight, uvqk_bias, **more):
            heads = self.HEADS.values()
            return functional_layer.hstu_compute_uqvk(x, weight, bias, 1e-6, *heads, uvqk_weight, uvqk_bias, **more)

        self.agree(plain(ours, x, weight, bias, uvqk_weight, uvqk_bias), expected)
        again = plain(ours, x, weight, bias, uvqk_weight, uvqk_bias, recompute_uvqk_in_backward=True)
        self.agree(again, expected)

    def test_preprocess_and_attention(self):
        x, weight, bias, uvqk_weight, uvqk_bias = self.projection()
        masks = {"num_targets": torch.tensor([1, 0, 2]), "max_attn_len": 3, "contextual_seq_len": 1}
        offsets = torch_cases.offsets()

        def expected(*tensors):
            u, q, k, v = self.uqvk(*tensors)
            return u, functional.hstu_mha(8, 0.25, q, k, v, offsets, **masks).view(8, 16)

        def ours(x, weight, bias, uvqk_weight, uvqk_bias, prefill=False, recompute=True):
            return generative_recommenders.hstu_preprocess_and_attention(
                x, weight, bias, 1e-6, *self.HEADS.values(), uvqk_weight, uvqk_bias, 8, offsets, 0.25, True,
                *masks.values(), recompute, recompute, False, prefill,
            )  # fmt: skip

        wanted = plain(expected, x, weight, bias, uvqk_weight, uvqk_bias)
        self.agree(plain(ours, x, weight, bias, uvqk_weight, uvqk_bias), wanted)
        self.agree(plain(ours, x, weight, bias, uvqk_weight, uvqk_bias, recompute=False), wanted)
        with torch.no_grad():
            _, attn, k, v = ours(x, weight, bias, uvqk_weight, uvqk_bias, prefill=True)
            self.assertEqual((k.shape, v.shape), ((8, 2, 16), (8, 2, 8)))
            self.agree([attn], [wanted[1]])
            self.assertIsNone(ours(x, weight, bias, uvqk_weight, uvqk_bias)[2])
        with self.assertRaisesRegex(errors.UnsupportedError, "attn_func"):
            generative_recommenders.hstu_preprocess_and_attention(
                x, weight, bias, 1e-6, *self.HEADS.values(), uvqk_weight, uvqk_bias, 8, offsets, 0.25, True, None, 0, 0,
                False, False, False, attn_func=torch.ones(1),
            )  # fmt: skip

    def test_compute_output(self):
        attn, u, x = (0.3 * torch_cases.tensor(8, 16, seed=seed).to(self.DTYPE) for seed in range(3))

        def expected(attn, u, x, weight, bias, output_weight, concat_u, concat_x, activation, group_norm):
            if group_norm:
                heads = attn.float().view(8, 2, 8)
                normed = torch.nn.functional.group_norm(heads, 2, weight.float(), bias.float(), 1e-6).view(8, 16)
                concat_u = concat_x = concat_u and concat_x
                activation = "none"
            else:
                normed = torch.nn.functional.layer_norm(attn.float(), (16,), weight.float(), bias.float(), 1e-6)
            gate = {"none": lambda u: u, "silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid}[activation]
            parts = [u.float()] * concat_u + [attn.float()] * concat_x + [gate(u.float()) * normed]
            return torch.addmm(x, torch.cat(parts, 1).to(x.dtype), output_weight)

        def ours(attn, u, x, weight, bias, output_weight, *how):
            return generative_recommenders.hstu_compute_output(
                attn, u, x, weight, bias, 1e-6, output_weight, 2, 8, 0.5, False, *how, True
            )

        for how in ((True, True, "none", False), (False, True, "silu", False), (True, False, "sigmoid", True)):
            width, norm = 16 * (1 if how[3] else 1 + how[0] + how[1]), 2 if how[3] else 16
            weights = (0.3 * torch_cases.tensor(*s, seed=4).to(self.DTYPE) for s in ((norm,), (norm,), (width, 16)))
            tensors = [attn, u, x, *weights]
            with self.subTest(how):
                wanted = plain(lambda *given, how=how: expected(*given, *how), *tensors)
                self.agree(plain(lambda *given, how=how: ours(*given, *how), *tensors), wanted)

    def test_scales_of_scores_and_silu_of_a_norm(self):
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        plainly = functional.hstu_mha(length, alpha, q, k, v, offsets)
        for scale in (torch.tensor(1 / length), torch.full((8,), 1 / length)):
            scaled = functional.hstu_mha(length, alpha, q, k, v, offsets, attn_scale=scale)
            torch.testing.assert_close(scaled, plainly)
        x, weight = torch_cases.tensor(8, 16), torch_cases.tensor(16, seed=1)
        normed = torch.nn.functional.silu(functional.rms_norm(x, weight))
        torch.testing.assert_close(functional.rms_norm(x, weight, silu=True), normed)


class LayerOfFp32(Layer):
    DTYPE, TOLERANCE = (torch.float32, 1e-4) if torch else (None, 0)
