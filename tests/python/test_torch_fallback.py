"""A model of a public package, with ``hstujit.torch.patch`` and without: what no operator takes stays with it."""

import importlib
import itertools
import sys
import types
import unittest

from torch_support import import_scratch_packages, torch

from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch
    from hstujit.torch import functional, generative_recommenders, tzrec

KERNELS = """import enum

import torch


class Kernel(enum.Enum):
    PYTORCH = "PYTORCH"
    TRITON = "TRITON"


"""
# Operators of a package in plain PyTorch, which takes any data type and size.
PACKAGE = {
    "ops/jagged_tensors.py": """
def concat_2D_jagged(max_seq_len, values_left, values_right, max_len_left=None, max_len_right=None,
                     offsets_left=None, offsets_right=None, kernel=Kernel.PYTORCH):
    sides = (values_left, offsets_left), (values_right, offsets_right)
    parts = zip(*(values.split(offsets.diff().tolist()) for values, offsets in sides))
    return torch.cat([part for both in parts for part in both])


def split_2D_jagged(max_seq_len, values, total_len_left=None, total_len_right=None, max_len_left=None,
                    max_len_right=None, offsets_left=None, offsets_right=None, kernel=Kernel.PYTORCH):
    lengths = torch.stack([offsets_left.diff(), offsets_right.diff()], 1).flatten().tolist()
    parts = values.split(lengths)
    return torch.cat(parts[::2]), torch.cat(parts[1::2])
""",
    "ops/layer_norm.py": """
def layer_norm(x, weight, bias, eps=1e-5, kernel=Kernel.PYTORCH):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight.to(x.dtype), bias.to(x.dtype), eps)


def rms_norm(x, weight, eps=1e-5, kernel=Kernel.PYTORCH):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)


def swish_layer_norm(x, weight, bias, eps=1e-5, kernel=Kernel.PYTORCH):
    return x * torch.sigmoid(torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps))
""",
    "ops/mm.py": """
def addmm(input, mat1, mat2, kernel=Kernel.PYTORCH):
    return torch.addmm(input, mat1, mat2)
""",
    "ops/hstu_attention.py": """
def hstu_mha(max_seq_len, alpha, q, k, v, seq_offsets, causal=True, dropout_pr=0.0, training=True, num_targets=None,
             attn_scale=None, max_attn_len=0, contextual_seq_len=0, min_full_attn_seq_len=0, sort_by_length=False,
             kernel=Kernel.PYTORCH, enable_tma=False):
    parts = (t.split(seq_offsets.diff().tolist()) for t in (q, k, v))
    return torch.cat([
        torch.einsum("hnm,mhd->nhd", torch.nn.functional.silu(alpha * torch.einsum("nhd,mhd->hnm", q, k)).tril(), v)
        for q, k, v in zip(*parts)
    ]) / max_seq_len
""",
    "ops/hstu_compute.py": """
def hstu_compute_uqvk(x, norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias,
                      kernel=Kernel.PYTORCH):
    normed = torch.nn.functional.layer_norm(x, x.shape[-1:], norm_weight, norm_bias, norm_eps)
    wide, narrow = num_heads * hidden_dim, num_heads * attn_dim
    u, v, q, k = torch.addmm(uvqk_bias, normed, uvqk_weight).split([wide, wide, narrow, narrow], 1)
    heads = (part.view(-1, num_heads, part.shape[1] // num_heads) for part in (q, k, v))
    return torch.nn.functional.silu(u), *heads


def hstu_compute_output(attn, u, x, norm_weight, norm_bias, norm_eps, output_weight, num_heads, linear_dim,
                        dropout_ratio, training, concat_u, concat_x, mul_u_activation_type, group_norm,
                        recompute_y_in_backward, kernel=Kernel.PYTORCH):
    y = u * torch.nn.functional.layer_norm(attn.float(), attn.shape[1:], norm_weight, norm_bias, norm_eps).to(u.dtype)
    return torch.addmm(x, torch.cat([u, attn, y], 1), output_weight)
""",
    "ops/position.py": """
def add_timestamp_positional_embeddings(
    alpha, max_seq_len, max_contextual_seq_len, position_embeddings_weight, timestamp_embeddings_weight, seq_offsets,
    seq_lengths, seq_embeddings, timestamps, num_targets, interleave_targets, time_bucket_fn="sqrt",
    kernel=Kernel.PYTORCH
):
    return alpha * seq_embeddings + timestamp_embeddings_weight[0]
""",
    "model.py": """
from generative_recommenders.ops.jagged_tensors import concat_2D_jagged, split_2D_jagged
from generative_recommenders.ops.layer_norm import layer_norm


class Transducer(torch.nn.Module):
    \"\"\"Moves embeddings and, as the public one, timestamps of int64, as rows of one column.\"\"\"

    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = (torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width)))

    def forward(self, embeddings, timestamps, offsets, context, context_times, context_offsets):
        sizes = context_offsets, offsets
        rows = concat_2D_jagged(16, context, embeddings, 4, 12, *sizes)
        times = concat_2D_jagged(16, context_times.unsqueeze(-1), timestamps.unsqueeze(-1), 4, 12, *sizes)
        rows = layer_norm(rows, self.weight, self.bias)
        totals = context.shape[0], embeddings.shape[0]
        _, rows = split_2D_jagged(16, rows, *totals, 4, 12, *sizes)
        _, times = split_2D_jagged(16, times, *totals, 4, 12, *sizes)
        return rows, times.squeeze(-1)
""",
}


def write_package(folder):
    package = folder / "generative_recommenders"
    (package / "ops").mkdir(parents=True)
    for init in (package, package / "ops"):
        (init / "__init__.py").write_text("")
    for name, text in PACKAGE.items():
        (package / name).write_text(KERNELS + text)


class Package(unittest.TestCase):
    def setUp(self):
        import_scratch_packages(self, write_package, ("generative_recommenders", "tzrec"))
        self.addCleanup(hstujit.torch.unpatch)

    @staticmethod
    def module(name):
        return importlib.import_module(f"generative_recommenders.{name}")


@unittest.skipUnless(torch, "PyTorch is not installed")
class Model(Package):
    def test_rows_of_every_type_that_a_model_moves(self):
        model = self.module("model").Transducer(16)
        offsets, others = torch_cases.offsets(), torch_cases.offsets(0, 2, 5, 6)
        times = torch.tensor([5, -1, 2**62 + 1, 7, 9, 400, -(2**63), 2**63 - 1])
        context_times = torch.arange(6) + 2**40
        for kind in (torch.int64, torch.int32, torch.float32, torch.float64, torch.int16, torch.uint8, torch.bool):
            given = (torch_cases.tensor(8, 16), times.to(kind), offsets, torch_cases.tensor(6, 16, seed=1),
                     context_times.to(kind), others)  # fmt: skip
            with self.subTest(kind):
                expected = model(*given)
                report = hstujit.torch.patch("generative_recommenders")
                rows, moved = model(*given)
                torch.testing.assert_close(rows, expected[0])
                self.assertEqual(moved.dtype, kind)
                self.assertTrue(torch.equal(moved, expected[1]))
                calls = report.calls["generative_recommenders.ops.jagged_tensors.split_2D_jagged"]
                served = (1, 1) if kind == torch.float64 else (2, 0)
                self.assertEqual((calls.ours, calls.theirs.total()), served)
                hstujit.torch.unpatch()


def refused():
    """Calls that the operators' limits refuse: module, function, arguments by place, and by name."""
    float_times = torch.arange(8.0)
    x, weight, bias = torch_cases.tensor(8, 16), torch_cases.tensor(16, seed=1), torch_cases.tensor(16, seed=2)
    offsets, wide, columns = torch_cases.offsets(), torch_cases.tensor(3, 16392), torch.ones(16392)
    times = (2.0, 8, 0, torch_cases.tensor(9, 16), torch_cases.tensor(9, 16), offsets, offsets.diff(), x, float_times)
    yield "ops.position", "add_timestamp_positional_embeddings", (*times, None, False), {}
    for name, more in (("layer_norm", (columns,)), ("rms_norm", ()), ("swish_layer_norm", (columns,))):
        yield "ops.layer_norm", name, (wide, columns, *more), {}
    yield "ops.layer_norm", "layer_norm", (x.bfloat16(), weight.bfloat16(), bias), {}
    yield "ops.layer_norm", "layer_norm", (x, weight > 0, bias), {}
    lengths = {"offsets_left": offsets, "offsets_right": offsets}
    yield "ops.jagged_tensors", "concat_2D_jagged", (16, *[torch_cases.tensor(8, 16392)] * 2), lengths
    yield "ops.jagged_tensors", "concat_2D_jagged", (16, *[torch.ones(8, 2049, dtype=torch.int64)] * 2), lengths
    yield "ops.jagged_tensors", "concat_2D_jagged", (16, x, x.bfloat16()), lengths
    yield "ops.jagged_tensors", "concat_2D_jagged", (16, x, x.long()), lengths
    yield "ops.jagged_tensors", "split_2D_jagged", (16, torch_cases.tensor(16, 4).double()), lengths
    heads = [torch_cases.tensor(8, 1025, 8)] * 3
    yield "ops.hstu_attention", "hstu_mha", (8, 0.25, *heads, offsets), {}
    dims = [torch_cases.tensor(8, 2, 264)] * 3
    yield "ops.hstu_attention", "hstu_mha", (8, 0.25, *dims, offsets), {}
    q = [torch_cases.tensor(8, 2, 16)] * 3
    yield "ops.hstu_attention", "hstu_mha", (8, 0.25, *q, offsets), {"max_attn_len": -2}
    projection = torch_cases.tensor(16392, 96), torch_cases.tensor(96)
    yield "ops.hstu_compute", "hstu_compute_uqvk", (wide, columns, columns, 1e-5, 2, 16, 8, *projection), {}
    projection = torch_cases.tensor(16, 1088), torch_cases.tensor(1088)
    yield "ops.hstu_compute", "hstu_compute_uqvk", (x, weight, bias, 1e-5, 2, 264, 8, *projection), {}
    yield "ops.mm", "addmm", (torch_cases.tensor(1, 24), x, torch_cases.tensor(16, 24)), {}
    yield "ops.mm", "addmm", (torch.ones(24).long(), x.long(), torch.ones(16, 24).long()), {}


@unittest.skipUnless(torch, "PyTorch is not installed")
class Limits(Package):
    def test_calls_beyond_the_limits_are_those_of_the_package(self):
        expected = [getattr(self.module(m), f)(*args, **more) for m, f, args, more in refused()]
        report = hstujit.torch.patch("generative_recommenders")
        for (module, name, args, more), theirs in zip(refused(), expected, strict=True):
            calls = report.calls[f"generative_recommenders.{module}.{name}"]
            before = calls.ours, calls.theirs.total()
            with self.subTest(name, arguments=[getattr(a, "shape", a) for a in args]):
                ours = getattr(self.module(module), name)(*args, **more)
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
                self.assertEqual((calls.ours, calls.theirs.total()), (before[0], before[1] + 1))

    def test_likewise_while_torch_compiles(self):
        """Decided by what is known while it traces: an error of an operator could not be caught there."""
        hstujit.torch.patch("generative_recommenders")
        for module, name, args, more in refused():
            function = getattr(self.module(module), name)
            if name in ("concat_2D_jagged", "split_2D_jagged", "hstu_mha"):
                continue  # the stand-ins for these read lengths
            torch._dynamo.reset()
            compiled = torch.compile(lambda *args, function=function, more=more: function(*args, **more),
                                     backend="eager", fullgraph=True)  # fmt: skip
            with self.subTest(name, arguments=[getattr(a, "shape", a) for a in args]):
                torch.testing.assert_close(compiled(*args), function(*args, **more))

    def test_what_only_the_operator_knows_is_a_limit_as_well(self):
        """No check of types and sizes says it: the operator refuses, and the package is asked."""
        q = torch_cases.tensor(8, 2, 16)
        arguments = 8, 0.25, q, q, q, torch_cases.offsets()
        changes = {"num_targets": torch.ones(3, 1).long()}, {"max_attn_len": None}, {"contextual_seq_len": 2**40}
        mha = self.module("ops.hstu_attention").hstu_mha
        expected = [mha(*arguments, **change) for change in changes]
        report = hstujit.torch.patch("generative_recommenders")
        mha = self.module("ops.hstu_attention").hstu_mha
        for change, theirs in zip(changes, expected, strict=True):
            self.assertTrue(torch.equal(mha(*arguments, **change), theirs))
        calls = report.calls["generative_recommenders.ops.hstu_attention.hstu_mha"]
        self.assertEqual((calls.ours, calls.theirs.total()), (0, 3))

    def test_a_mistake_in_values_is_no_limit(self):
        report = hstujit.torch.patch("generative_recommenders")
        q = torch_cases.tensor(8, 2, 16)
        falling = torch.tensor([0, 5, 3, 8])
        mha = self.module("ops.hstu_attention").hstu_mha
        with self.assertRaisesRegex(errors.InvalidArgumentError, "seq_offsets"):
            mha(8, 0.25, q, q, q, falling)
        self.assertFalse(report.calls["generative_recommenders.ops.hstu_attention.hstu_mha"].theirs)

    def test_a_call_that_neither_takes_has_the_error_of_the_package(self):
        hstujit.torch.patch("generative_recommenders")
        x, weight = torch_cases.tensor(8, 16), torch_cases.tensor(2, 16)
        with self.assertRaisesRegex(RuntimeError, "normalized_shape") as raised:
            self.module("ops.layer_norm").layer_norm(x, weight, weight)
        self.assertIsInstance(raised.exception.__context__, errors.InvalidArgumentError)
        q = torch_cases.tensor(8, 2, 16)
        mha = self.module("ops.hstu_attention").hstu_mha
        given = {"max_seq_len": 8, "alpha": 0.25, "q": q, "k": q, "v": q, "seq_offsets": torch_cases.offsets()}
        for change, ours in (({"q": q[0, 0, 0]}, errors.InvalidArgumentError), ({"alpha": None}, RuntimeError)):
            with self.assertRaises((RuntimeError, TypeError, IndexError)) as raised:
                mha(**{**given, **change})
            self.assertIsInstance(raised.exception.__context__, ours)

    def test_reasons_do_not_grow_without_end(self):
        calls = hstujit.torch.Calls()
        for number in range(300):
            calls.count(f"x is {number}")
        self.assertEqual((len(calls.theirs), calls.theirs.total()), (101, 300))

    def test_autocast_gives_a_layer_of_several_types_one(self):
        arguments = [torch_cases.tensor(8, 16, seed=1).bfloat16(), torch_cases.tensor(8, 16, seed=2).bfloat16(),
                     torch_cases.tensor(8, 16), torch.ones(16), torch.zeros(16), 1e-5,
                     torch_cases.tensor(48, 16), 2, 8, 0.0, False, True, True, "none", False, False]  # fmt: skip
        output = self.module("ops.hstu_compute")
        with torch.autocast("cpu", torch.bfloat16):
            expected = output.hstu_compute_output(*arguments)
            report = hstujit.torch.patch("generative_recommenders")
            ours = output.hstu_compute_output(*arguments)
        calls = report.calls["generative_recommenders.ops.hstu_compute.hstu_compute_output"]
        self.assertEqual((calls.ours, ours.dtype), (1, expected.dtype))
        torch.testing.assert_close(ours, expected, rtol=5e-2, atol=5e-2)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Modules(Package):
    def test_what_is_no_module_is_passed_over(self):
        layer_norm = self.module("ops.layer_norm")
        original = layer_norm.layer_norm
        sys.modules["generative_recommenders.blocked"] = None
        sys.modules["generative_recommenders.odd"] = 3
        sys.modules["generative_recommenders.ops.mm"] = None
        report = hstujit.torch.patch("generative_recommenders")
        self.assertIsNot(layer_norm.layer_norm, original)
        self.assertEqual(report.left["generative_recommenders.ops.mm.addmm"], "there is no such module")
        hstujit.torch.unpatch()
        self.assertIs(layer_norm.layer_norm, original)

    def test_all_is_replaced_or_nothing(self):
        class Fixed(types.ModuleType):
            def __setattr__(self, name, value):
                raise AttributeError("fixed")

        functions = [vars(self.module(f"ops.{m}")) for m in ("layer_norm", "mm", "hstu_attention")]
        before = [dict(names) for names in functions]
        fixed = Fixed("generative_recommenders.zzz")
        vars(fixed)["addmm"] = self.module("ops.mm").addmm
        sys.modules[fixed.__name__] = fixed
        with self.assertRaisesRegex(AttributeError, "fixed"):
            hstujit.torch.patch("generative_recommenders")
        self.assertEqual(functions, before)
        self.assertEqual(hstujit.torch.unpatch(), ())
        del sys.modules[fixed.__name__]
        self.assertIn("generative_recommenders.ops.mm.addmm", hstujit.torch.patch("generative_recommenders").replaced)

    def test_a_package_without_a_folder_of_operators(self):
        sys.modules["tzrec"] = types.ModuleType("tzrec")
        wrong = "^package is 'tzrec', which has none of the functions that are replaced .*: there is no such module"
        with self.assertRaisesRegex(hstujit.errors.UnsupportedError, wrong):
            hstujit.torch.patch("tzrec")


@unittest.skipUnless(torch, "PyTorch is not installed")
class Kept(Package):
    def kept(self, kernel):
        module = self.module("ops.mm")
        added, mat1, mat2 = torch.ones(8), torch.ones(8, 8), torch.ones(8, 8)
        calls = hstujit.torch.patch("generative_recommenders", keep=kernel).calls[
            "generative_recommenders.ops.mm.addmm"
        ]
        before = calls.theirs["kernel PYTORCH is kept"]
        module.addmm(added, mat1, mat2, module.Kernel.PYTORCH)
        return calls.theirs["kernel PYTORCH is kept"] - before

    def test_names_and_members_of_an_enum_one_or_several(self):
        kernels = self.module("ops.mm").Kernel
        for kernel in ("PYTORCH", ["PYTORCH"], {"PYTORCH", "TRITON"}, kernels.PYTORCH, (kernels.PYTORCH,)):
            self.assertEqual(self.kept(kernel), 1, kernel)

    def test_the_last_call_counts(self):
        wanted = [("TRITON",), "PYTORCH", ()]
        self.assertEqual([self.kept(kernel) for kernel in wanted], [0, 1, 0])

    def test_what_is_no_kernel_is_refused(self):
        for kernel, words in (
            ("PYTROCH", "keep is 'PYTROCH', did you mean 'PYTORCH'"),
            (["pytorch"], "keep is 'pytorch', did you mean 'PYTORCH'.; allowed: 'PYTORCH', 'TRITON'"),
            (None, "keep is None; it must be names of kernels"),
            (1, "keep is 1; it must be"),
            ([None], "keep is .None.; it must be"),
            ([["PYTORCH"]], "keep is .*; it must be"),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                hstujit.torch.patch("generative_recommenders", keep=kernel)
            self.assertEqual(hstujit.torch.unpatch(), ())

    def test_what_is_no_package_is_refused(self):
        wrong = ["tzrec"], {}, 1, b"tzrec", "tzre"
        for package, change in itertools.product(wrong, (hstujit.torch.patch, hstujit.torch.unpatch)):
            words = "^package is .*; allowed: 'generative_recommenders', 'tzrec'"
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                change(package)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Integers(unittest.TestCase):
    """The functions themselves, which a model imports in place of the package's, move integers, too."""

    def test_bits_stay_as_they_are(self):
        offsets, others = torch_cases.offsets(), torch_cases.offsets(0, 2, 5, 6)
        patterns = torch.randint(0, 256, (14, 40), dtype=torch.uint8)
        patterns[0] = torch.tensor([0, 0, 160, 127, 1, 0, 0, 128] * 5)  # a NaN that signals, denormals, and -0 of fp32
        for kind in (torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
            values = patterns > 128 if kind == torch.bool else patterns.view(kind)
            for rows in (values, values.t().contiguous().t(), values.repeat_interleave(2, 1)[:, ::2], values[:, :1]):
                left, right = functional.split_2D_jagged(9, rows, 8, 6, 5, 3, offsets, others)
                self.assertEqual((left.dtype, right.dtype), (kind, kind))
                together = tzrec.concat_2D_jagged(left, right, 5, 3, offsets, others)
                self.assertTrue(torch.equal(together, rows))
                self.assertTrue(torch.equal(left[3:], rows[8:13]))
            both = generative_recommenders.hstu_split_l2_embeddings(9, values, offsets, others, 1)
            again = generative_recommenders.hstu_concat_l2_embeddings(5, both[0], offsets, 3, both[1], others, 1)
            self.assertTrue(torch.equal(again, values))
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(tzrec.concat_2D_jagged(left, right, 5, 3, offsets, others).dtype, torch.int64)

    def test_compiled_and_traced(self):
        offsets, others = torch_cases.offsets(), torch_cases.offsets(0, 2, 5, 6)

        class Moves(torch.nn.Module):
            def forward(self, left, right, offsets, others):
                rows = tzrec.concat_2D_jagged(left, right, 5, 3, offsets, others)
                return tzrec.split_2D_jagged(9, rows, 8, 6, 5, 3, offsets, others)

        given = torch.randint(-(2**62), 2**62, (8, 3)), torch.randint(-(2**62), 2**62, (6, 3)), offsets, others
        torch._dynamo.reset()
        for moves in (torch.compile(Moves(), fullgraph=True, backend="aot_eager"), torch.fx.symbolic_trace(Moves())):
            for moved, expected in zip(moves(*given), given[:2], strict=False):
                self.assertTrue(torch.equal(moved, expected))

    def test_what_is_not_moved(self):
        offsets = torch_cases.offsets()
        x, wide = torch_cases.tensor(8, 4), torch.ones(8, 2049).long()
        for left, right, words in (
            (x.long(), x.int(), "values_right has dtype int32; it must be int64"),
            (x.long(), x, "values_right has dtype fp32; it must be int64"),
            (x.long()[0], x.long()[0], "values_left has rank 1, "),
            (wide, wide, "values_left.shape.1. is 16392; it must be width, from 1 to 16384"),
            (x.double(), x.double(), "values_left has dtype fp64; it must be bf16, fp16 or fp32"),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                tzrec.concat_2D_jagged(left, right, 5, 5, offsets, offsets)
