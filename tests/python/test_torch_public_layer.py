"""The functions of a layer with public names, with their gradients, against plain PyTorch."""

import unittest

from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases

    from hstujit.torch import functional, functional_layer, generative_recommenders


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
        with self.assertRaisesRegex(errors.InvalidArgumentError, "attn_func has dtype fp32"):
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
