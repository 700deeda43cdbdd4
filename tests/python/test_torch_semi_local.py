"""A patched tzrec: the intervals of semi-local attention become the fields that say the same."""

import importlib
import unittest

from torch_support import JaggedAttention, import_scratch_packages, torch

if torch:
    from test_torch_stu_instances import launched

    import hstujit.torch

# A stand-in for the package: its names and arguments, and a builder that goes from sequence to sequence.
PACKAGE = {
    "ops/hstu_attention_utils.py": """
def build_sla_func_tensor(
    nheads, sla_k1, sla_k2, seq_offsets, total_q, num_targets=None, contextual_seq_len=0, device=None
):
    first = max(sla_k2, contextual_seq_len)
    row = torch.arange(total_q, dtype=torch.int32) - seq_offsets[:-1].repeat_interleave(seq_offsets.diff())
    rows = seq_offsets.diff() if num_targets is None else (seq_offsets.diff() - num_targets).clamp(min=0)
    history = rows.repeat_interleave(seq_offsets.diff())
    own = torch.stack([(row + 1).clamp(max=first), (row - sla_k1 + 1).clamp(min=first), row + 1])
    return torch.where(row < history, own, history).to(torch.int32).expand(nheads, -1, -1).contiguous()
""",
    "ops/hstu_attention.py": """
def hstu_mha(
    max_seq_len, alpha, q, k, v, seq_offsets, causal=True, dropout_pr=0.0, training=True, num_targets=None,
    max_attn_len=0, contextual_seq_len=0, min_full_attn_seq_len=0, sort_by_length=False, kernel=None, enable_tma=False,
    attn_func=None, scaling_seqlen=-1,
):
    return "theirs"
""",
    "ops/hstu_compute.py": """
def hstu_preprocess_and_attention(
    x, norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias, max_seq_len,
    seq_offsets, attn_alpha, causal, num_targets, max_attn_len, contextual_seq_len, recompute_uvqk_in_backward,
    recompute_normed_x_in_backward, sort_by_length, prefill=False, kernel=None, enable_tma=False, attn_func=None,
    scaling_seqlen=-1,
):
    return "theirs"
""",
    "model.py": """
from tzrec.ops.hstu_attention import hstu_mha
from tzrec.ops.hstu_attention_utils import build_sla_func_tensor


class Layer(torch.nn.Module):
    def forward(self, q, k, v, seq_offsets, num_targets):
        attn_func = build_sla_func_tensor(2, 9, 5, seq_offsets, q.size(0), num_targets)
        return hstu_mha(64, 0.25, q, k, v, seq_offsets, num_targets=num_targets, attn_func=attn_func)
""",
}


def write_package(folder):
    for name in ("tzrec", "tzrec/ops"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
    for name, text in PACKAGE.items():
        (folder / "tzrec" / name).write_text("import torch\n" + text)


@unittest.skipUnless(torch, "PyTorch is not installed")
class SemiLocal(JaggedAttention):
    def setUp(self):
        super().setUp()
        import_scratch_packages(self, write_package, ("tzrec",))
        self.addCleanup(hstujit.torch.unpatch)
        self.targets = torch.tensor([4, 0, 7, 0])
        self.model = importlib.import_module("tzrec.model")
        self.report = hstujit.torch.patch("tzrec")

    def build(self, *, heads=2, k1=9, k2=5, targets=None, contexts=0):
        return self.model.build_sla_func_tensor(heads, k1, k2, self.offsets, 101, targets, contexts)

    def attend(self, attn_func, offsets=None, function=None):
        """The output, and whether the fields of semi-local attention were launched."""
        function = function or self.model.hstu_mha
        with launched() as found:
            out = function(64, 0.25, *self.qkv, self.offsets if offsets is None else offsets, attn_func=attn_func)
        ((_, _, spec),) = found
        spec = dict(spec)
        self.assertNotEqual(bool(spec["sla_k1"] or spec["sla_k2"]), bool(spec.get("attn_func")))
        return out, (spec["sla_k1"], spec["sla_k2"])

    def test_fields_say_what_intervals_say(self):
        for more, fields in (
            ({}, (9, 5)),
            ({"targets": self.targets}, (9, 5)),
            ({"targets": self.targets.int(), "contexts": 8, "heads": 1}, (9, 8)),
            ({"targets": self.targets + 50}, (9, 5)),
            ({"k1": 0, "contexts": 3}, (0, 5)),
            ({"k1": 4, "k2": 0, "targets": self.targets}, (4, 0)),
        ):
            with self.subTest(more):
                attn_func = self.build(**more)
                (found, launched), (wanted, others) = self.attend(attn_func), self.attend(attn_func.clone())
                self.assertEqual((launched, others), (fields, (0, 0)))
                self.assertTrue(torch.allclose(found, wanted, atol=1e-6))
                both = (torch.autograd.grad(out, self.qkv, self.dout) for out in (found, wanted))
                for own, other in zip(*both, strict=True):
                    self.assertTrue(torch.allclose(own, other, atol=1e-5))

    def test_what_was_written_since_counts(self):
        for change in (
            lambda attn_func: attn_func[0, 0, 50:].zero_(),
            lambda attn_func: self.targets.add_(0),
            lambda attn_func: self.offsets.add_(0),
        ):
            attn_func = self.build(targets=self.targets)
            change(attn_func)
            found, fields = self.attend(attn_func)
            self.assertEqual(fields, (0, 0))
            self.assertTrue(torch.equal(found, self.attend(attn_func.clone())[0]))
        self.assertEqual(self.attend(self.build())[1], (9, 5))
        self.assertEqual(self.attend(self.build(), self.offsets.clone())[1], (0, 0))

    def test_a_half_of_a_layer_and_modules_with_the_public_names(self):
        compute = importlib.import_module("tzrec.ops.hstu_compute")
        generator = torch.Generator().manual_seed(3)
        x, uvqk = torch.randn(101, 16, generator=generator), 0.25 * torch.randn(16, 96, generator=generator)
        attn_func = self.build(targets=self.targets)
        for prefill in (False, True):
            results = []
            for intervals in (attn_func, attn_func.clone()):
                with launched() as found:
                    results.append(compute.hstu_preprocess_and_attention(
                        x, torch.ones(16), torch.zeros(16), 1e-5, 2, 16, 8, uvqk, torch.zeros(96), 64, self.offsets,
                        0.25, True, self.targets, 0, 2, False, False, False, prefill, attn_func=intervals,
                    )[1])  # fmt: skip
                specs = [dict(spec) for op, _, spec in found if op != "hstu_compute_uqvk"]
                self.assertEqual([spec["sla_k1"] for spec in specs], [9 if intervals is attn_func else 0])
            self.assertTrue(torch.allclose(*results, atol=1e-6))
        self.assertEqual(self.attend(attn_func, function=hstujit.torch.hstu_mha)[1], (9, 5))

    def test_what_traces_has_intervals(self):
        layer, arguments = self.model.Layer(), (*self.qkv, self.offsets, self.targets)
        with launched() as found:
            wanted = layer(*arguments)
        self.assertEqual([dict(spec)["sla_k1"] for _, _, spec in found], [9])
        torch._dynamo.reset()
        compiled = torch.compile(layer, backend="aot_eager")(*arguments)
        with torch.inference_mode():
            inferred = layer(*(argument.clone() for argument in arguments))
        for found in (compiled, inferred, torch.fx.symbolic_trace(layer)(*arguments)):
            self.assertTrue(torch.allclose(found, wanted, atol=1e-6))

    def test_the_report_has_the_builder(self):
        name = "tzrec.ops.hstu_attention_utils.build_sla_func_tensor"
        self.assertIn(name, self.report.replaced)
        self.build(), self.build(k1=0, k2=0)
        with torch.inference_mode():
            self.build(targets=self.targets.clone())
        calls = self.report.calls[name]
        self.assertEqual((calls.ours, calls.theirs), (1, {"intervals that stay a tensor": 2}))
        self.assertIs(hstujit.torch.patch("tzrec").calls[name], calls)
        self.assertIn(name, hstujit.torch.unpatch("tzrec"))
        self.assertFalse(vars(self.build()))

    def test_a_builder_with_other_arguments_stays(self):
        hstujit.torch.unpatch()
        utils = importlib.import_module("tzrec.ops.hstu_attention_utils")

        def build_sla_func_tensor(batch_size, nheads, max_seqlen_q, sla_k1, sla_k2, device):
            return None

        build_sla_func_tensor.__module__ = utils.__name__
        utils.build_sla_func_tensor = build_sla_func_tensor
        left = hstujit.torch.patch("tzrec").left
        self.assertIn("it takes batch_size", left[f"{utils.__name__}.build_sla_func_tensor"])
        self.assertIs(utils.build_sla_func_tensor, build_sla_func_tensor)


if __name__ == "__main__":
    unittest.main()
