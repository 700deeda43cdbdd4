"""The fused layer under the name of NVIDIA's recsys-examples, beside plain PyTorch in float64."""

import inspect
import unittest

from torch_support import torch

import hstujit

if torch:
    import formulas
    import torch_cases

    from hstujit.torch.recsys_examples import fused_hstu_op

HEADS, DIM, WIDTH, ROWS = 2, 16, 24, 13
# The arguments of its fused_hstu_op at 034a00edc158.
PUBLIC = (
    "input seqlen_offsets max_seqlen scaling_seqlen linear_uvqk_weight linear_uvqk_bias linear_proj_weight num_heads "
    "linear_dim_per_head attention_dim_per_head ln_eps dropout_ratio training input_norm_weight input_norm_bias "
    "output_norm_weight output_norm_bias attn_backend num_targets num_contextuals target_group_size alpha causal seed "
    "residual wgrad_stream wgrad_event recompute_input_layernorm recompute_input_silu"
)


@unittest.skipUnless(torch, "PyTorch is not installed")
class FusedLayer(unittest.TestCase):
    def weights(self):
        shapes = {
            "linear_uvqk_weight": (WIDTH, 4 * HEADS * DIM),
            "linear_uvqk_bias": (4 * HEADS * DIM,),
            "linear_proj_weight": (HEADS * DIM, WIDTH),
            "input_norm_weight": (WIDTH,),
            "input_norm_bias": (WIDTH,),
            "output_norm_weight": (HEADS * DIM,),
            "output_norm_bias": (HEADS * DIM,),
        }
        return {name: 0.3 * torch_cases.tensor(*shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}

    def call(self, x, weights, **more):
        offsets = torch.tensor([0, 5, 6, ROWS])
        sizes = (HEADS, DIM, DIM, 1e-5, 0.0, True)
        first = [weights[name] for name in ("linear_uvqk_weight", "linear_uvqk_bias", "linear_proj_weight")]
        norms = {name: value for name, value in weights.items() if "norm" in name}
        return fused_hstu_op(x, offsets, 8, 8, *first, *sizes, **norms, alpha=0.25, **more)

    def expected(self, x, weights, residual=True, num_targets=None):
        """The same by the names of the operator."""
        ones = {name: torch.ones(columns) for name, columns in (("input", WIDTH), ("output", HEADS * DIM))}
        norms = {}
        for side, one in ones.items():
            norms[f"{side}_norm_weight"] = weights.get(f"{side}_norm_weight", one).to(x.dtype)
            norms[f"{side}_norm_bias"] = weights.get(f"{side}_norm_bias", 0 * one).to(x.dtype)
        return formulas.stu_layer(
            x, uvqk_weight=weights["linear_uvqk_weight"], uvqk_bias=weights["linear_uvqk_bias"],
            output_weight=weights["linear_proj_weight"], **norms, seq_offsets=torch.tensor([0, 5, 6, ROWS]),
            max_seq_len=8, alpha=0.25, scaling_seqlen=8, heads=HEADS, attn_dim=DIM, hidden_dim=DIM, concat_u=False,
            concat_x=False, silu_uvqk=True, residual=residual, num_targets=num_targets
        )  # fmt: skip

    def test_its_arguments_are_the_public_ones(self):
        self.assertEqual(list(inspect.signature(fused_hstu_op).parameters), PUBLIC.split())

    def test_a_layer_and_its_gradients(self):
        targets = torch.tensor([2, 0, 3], dtype=torch.int32)
        given = self.weights()
        plain = {name: value for name, value in given.items() if "norm" not in name}
        for weights, more in (
            (given, {}),
            (given, {"num_targets": targets, "num_contextuals": torch.zeros(3, dtype=torch.int32)}),
            (given, {"residual": False, "recompute_input_layernorm": True, "recompute_input_silu": True}),
            (plain, {}),
        ):
            with self.subTest(list(weights), **more):
                x = torch_cases.tensor(ROWS, WIDTH, seed=9)
                leaves = [x, *weights.values()]
                ours = [leaf.clone().requires_grad_() for leaf in leaves]
                exact = [leaf.double().requires_grad_() for leaf in leaves]
                found = self.call(ours[0], dict(zip(weights, ours[1:])), **more)
                kept = {name: value for name, value in more.items() if name in ("residual", "num_targets")}
                wanted = self.expected(exact[0], dict(zip(weights, exact[1:])), **kept)
                torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-5)
                factor = torch_cases.tensor(ROWS, WIDTH, seed=10)
                gradients = torch.autograd.grad((found * factor).sum(), ours)
                derivatives = torch.autograd.grad((wanted * factor).sum(), exact)
                for name, gradient, derivative in zip(["x", *weights], gradients, derivatives):
                    with self.subTest(name):
                        torch.testing.assert_close(gradient.double(), derivative, rtol=1e-3, atol=1e-5)

    def test_dropout_is_the_seeds(self):
        x, weights = torch_cases.tensor(ROWS, WIDTH, seed=9), self.weights()
        first = [weights[name] for name in ("linear_uvqk_weight", "linear_uvqk_bias", "linear_proj_weight")]

        def dropped(seed, training=True):
            offsets = torch.tensor([0, 5, 6, ROWS])
            return fused_hstu_op(x, offsets, 8, 8, *first, HEADS, DIM, DIM, 1e-5, 0.5, training, seed=seed)

        self.assertTrue(torch.equal(dropped(3), dropped(3)))
        self.assertFalse(torch.equal(dropped(3), dropped(4)))
        self.assertTrue(torch.equal(dropped(3, training=False), dropped(4, training=False)))

    def test_mistakes_have_its_names(self):
        weights = self.weights()
        weights["linear_uvqk_weight"] = weights["linear_uvqk_weight"][:-8]
        with self.assertRaisesRegex(hstujit.errors.Error, r"^linear_uvqk_weight.shape\[0\] is 16; it must be 24"):
            self.call(torch_cases.tensor(ROWS, WIDTH, seed=9), weights)


if __name__ == "__main__":
    unittest.main()
