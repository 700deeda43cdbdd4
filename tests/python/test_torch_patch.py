"""Functions with public names in the places that packages have for them."""

import importlib
import sys
import types
import unittest

from torch_support import import_scratch_packages, torch

from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch
    from hstujit.torch import functional

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

    def test_modules_of_a_model_have_ours_whatever_they_are_called(self):
        model = types.ModuleType("ranker_of_a_user")
        model.attend = self.attention.hstu_mha
        sys.modules[model.__name__] = model
        self.addCleanup(sys.modules.pop, model.__name__)
        theirs = model.attend
        hstujit.torch.patch("generative_recommenders")
        self.assertIs(model.attend, self.attention.hstu_mha)
        self.assertIsNot(model.attend, theirs)
        hstujit.torch.unpatch()
        self.assertIs(model.attend, theirs)

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
        wide = q.repeat(1, 1, 40)[..., :260]
        for change in ({"q": wide, "k": wide}, {"q": q.double()}, {"q": q.to("meta")}):
            self.assertEqual(self.model.hstu_mha(**{**self.arguments, **change}), "theirs")
        for training in (False, True):
            out = self.model.hstu_mha(**self.arguments, dropout_pr=0.1, training=training)
            self.assertEqual(out.shape, (8, 2, 8))

    def test_calls_are_counted_with_the_reason_why_they_went_to_the_package(self):
        report = hstujit.torch.patch("generative_recommenders")
        self.model.hstu_mha(**self.arguments)
        for change in ({}, {"q": self.arguments["q"].double()}):
            self.model.hstu_mha(**{**self.arguments, **change})
        calls = report.calls["generative_recommenders.ops.hstu_attention.hstu_mha"]
        self.assertEqual(calls.ours, 2)
        self.assertEqual(calls.theirs, {"fp64": 1})
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
        self.assertEqual(addmm.addmm(matrices[0][:9], matrices[1], matrices[2][:, :9], None).shape, (8, 9))
        self.assertEqual(addmm.addmm(matrices[0][:1], matrices[1], torch.zeros(16, 65537).half(), None), "theirs")
        calls = report.calls["generative_recommenders.ops.mm.addmm"]
        self.assertEqual((calls.ours, calls.theirs["kernel PYTORCH is kept"]), (3, 1))
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
