"""attn_func: the columns that each row sees, as intervals in a tensor, against plain PyTorch in float64."""

import unittest

from torch_support import JaggedAttention, torch

if torch:
    import torch_cases

    import hstujit.errors
    import hstujit.torch
    from hstujit.torch import tzrec


def decoded(attn_func, n):
    """The mask (heads, n, n) of a sequence's numbers (heads, F, n)."""
    columns = torch.arange(n)
    ends = attn_func[..., None]
    mask = columns < ends[:, 0]
    for number in range(1, attn_func.shape[1], 2):
        mask = mask | ((ends[:, number] <= columns) & (columns < ends[:, number + 1]))
    return mask


@unittest.skipUnless(torch, "PyTorch is not installed")
class Intervals(JaggedAttention):
    targets = [4, 0, 7, 0]

    def formula(self, attn_func):
        def attend(q, k, v):
            outs = []
            for b, n in enumerate(self.lengths):
                rows = slice(self.offsets[b], self.offsets[b] + n)
                products = 0.25 * torch.einsum("ihd,jhd->hij", q[rows], k[rows])
                weights = torch.nn.functional.silu(products) / self.longest * decoded(attn_func[..., rows], n)
                outs.append(torch.einsum("hij,jhd->ihd", weights, v[rows]))
            return torch.cat(outs)

        return attend

    def drawn(self, heads, numbers, dtype=torch.int32):
        generator = torch.Generator().manual_seed(numbers)
        return torch.randint(-20, 90, (heads, numbers, 101), generator=generator).to(dtype)

    def semi_local(self, k1, k2):
        """As TorchEasyRec builds it: a view whose heads are one."""
        numbers = []
        for n, targets in zip(self.lengths, self.targets, strict=True):
            row, history = torch.arange(n, dtype=torch.int32), n - targets
            own = torch.stack([(row + 1).clamp(max=k2), (row - k1 + 1).clamp(min=k2), row + 1])
            numbers.append(torch.where(row < history, own, history))
        return torch.cat(numbers, 1).expand(2, 3, 101)

    def test_any_numbers(self):
        for heads, numbers, dtype in ((1, 1, torch.int32), (2, 3, torch.int64), (1, 7, torch.int32)):
            attn_func = self.drawn(heads, numbers, dtype)
            found = hstujit.torch.hstu_mha(self.longest, 0.25, *self.qkv, self.offsets, attn_func=attn_func)
            self.check(found, self.formula(attn_func))

    def test_semi_local_attention_is_that_of_parameters(self):
        arguments, targets = (self.longest, 0.25, *self.qkv, self.offsets), torch.tensor(self.targets)
        wanted = hstujit.torch.attention(
            *self.qkv, self.offsets, self.longest, alpha=0.25, num_targets=targets, sla_k1=9, sla_k2=5
        )
        found = tzrec.hstu_mha(*arguments, num_targets=targets, contextual_seq_len=3, attn_func=self.semi_local(9, 5))
        for own, other in zip(
            (found, *torch.autograd.grad(found, self.qkv, self.dout)),
            (wanted, *torch.autograd.grad(wanted, self.qkv, self.dout)),
            strict=True,
        ):
            self.assertTrue(torch.allclose(own, other, atol=1e-5))

    def test_attention_with_a_score_takes_it(self):
        attn_func = self.drawn(2, 3)
        found = hstujit.torch.attention(
            *self.qkv, self.offsets, self.longest, alpha=0.25, score="silu(x)", attn_func=attn_func
        )
        self.check(found, self.formula(attn_func))

    def test_of_the_last_rows(self):
        q, k, v = (tensor.detach() for tensor in self.qkv)
        offsets, attn_func = torch.tensor([0, 40, 100, 101]), self.drawn(1, 3)
        last = torch.tensor([38, 39, 98, 99, 99, 100])
        found = hstujit.torch.delta_hstu_mha(
            self.longest, 0.25, q[last], k, v, offsets, attn_func=attn_func[..., last].contiguous()
        )
        whole = hstujit.torch.hstu_mha(self.longest, 0.25, q, k, v, offsets, attn_func=attn_func)
        self.assertTrue(torch.allclose(found[:4], whole[last[:4]], atol=1e-6))
        self.assertTrue(torch.equal(found[4], torch.zeros(2, 16)), "a row before its sequence sees nothing")

    def test_a_half_of_a_layer_takes_it(self):
        generator = torch.Generator().manual_seed(3)
        x, uvqk = torch.randn(101, 16, generator=generator), 0.25 * torch.randn(16, 96, generator=generator)
        attn_func, targets = self.drawn(2, 3), torch.tensor(self.targets)

        def attn_of(prefill):
            return tzrec.hstu_preprocess_and_attention(
                x, torch.ones(16), torch.zeros(16), 1e-5, 2, 16, 8, uvqk, torch.zeros(96), self.longest, self.offsets,
                0.25, True, targets, 0, 2, False, False, False, prefill, attn_func=attn_func,
            )  # fmt: skip

        _, attn, k, v = attn_of(True)
        self.assertTrue(torch.allclose(attn_of(False)[1], attn, atol=1e-5))
        causal = hstujit.torch.hstu_preprocess_and_attention(
            x, torch.ones(16), torch.zeros(16), 1e-5, 2, 16, 8, uvqk, torch.zeros(96), self.longest, self.offsets,
            0.25, True, None, 0, 0, False, False, False,
        )  # fmt: skip
        self.assertFalse(torch.allclose(causal[1], attn, atol=1e-3))

    def test_layers_take_it(self):
        """Causal intervals give what a causal layer gives."""
        every = {name: (operator, arguments, says) for name, operator, arguments, says in torch_cases.cases()}
        ends = torch.tensor([[[1, 2, 3, 1, 2, 3, 4, 5]]], dtype=torch.int32)
        for name in ("norm_attention", "layer_fp32", "stack"):
            operator, arguments, says = every[name]
            results = []
            for mask in ({"attn_func": ends}, {}):
                outputs = getattr(torch.ops.hstujit, operator)(*arguments, **{**says, **mask})
                results.append(outputs if isinstance(outputs, torch.Tensor) else outputs[0])
            self.assertTrue(torch.allclose(*results, atol=1e-5), name)

    def test_sentences(self):
        call = lambda **says: hstujit.torch.hstu_mha(self.longest, 0.25, *self.qkv, self.offsets, **says)  # noqa: E731
        for attn_func, words in (
            (self.drawn(1, 2), "attn_func is 2, but the first interval has an end alone"),
            (self.drawn(1, 3)[..., :50], r"attn_func.shape\[2\] is 50"),
            (self.drawn(3, 3), "attn_func_heads is 3"),
        ):
            with self.assertRaisesRegex(hstujit.errors.Error, words):
                call(attn_func=attn_func)


if __name__ == "__main__":
    unittest.main()
