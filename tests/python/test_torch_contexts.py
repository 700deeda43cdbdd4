"""Contexts of each sequence: a tensor in place of the number contextual_seq_len."""

import unittest

from torch_support import JaggedAttention, torch

if torch:
    import torch_cases

    import hstujit.errors
    import hstujit.torch
    from hstujit.torch import generative_recommenders


@unittest.skipUnless(torch, "PyTorch is not installed")
class Contexts(JaggedAttention):
    contexts = [3, 0, 17, 1]
    targets = [4, 0, 7, 0]

    def one_by_one(self, attend):
        """What calls of a sequence each give, with its number for all."""
        outs = []
        for b, contexts in enumerate(self.contexts):
            begin, end = self.offsets[b : b + 2].tolist()
            rows = [tensor[begin:end] for tensor in self.qkv]
            outs.append(attend(rows, torch.tensor([0, end - begin]), contexts, torch.tensor(self.targets[b : b + 1])))
        return torch.cat(outs)

    def expect_alike(self, found, wanted):
        """Outputs and gradients."""
        self.assertTrue(torch.allclose(found, wanted, atol=1e-6))
        for own, other in zip(
            *(torch.autograd.grad(out, self.qkv, self.dout, retain_graph=True) for out in (found, wanted)), strict=True
        ):
            self.assertTrue(torch.allclose(own, other, atol=1e-5))

    def test_each_sequence_has_its_own(self):
        for window in (0, 6):

            def mha(qkv, offsets, contexts, targets, window=window):
                return hstujit.torch.hstu_mha(
                    self.longest,
                    0.25,
                    *qkv,
                    offsets,
                    num_targets=targets,
                    max_attn_len=window,
                    contextual_seq_len=contexts,
                )

            wanted = self.one_by_one(mha)
            for dtype in (torch.int64, torch.int32):
                found = mha(
                    self.qkv, self.offsets, torch.tensor(self.contexts, dtype=dtype), torch.tensor(self.targets)
                )
                self.expect_alike(found, wanted)

    def test_attention_with_a_score_takes_them(self):
        says = {"score": "relu(x)", "max_attn_len": 6}

        def attend(qkv, offsets, contexts, _):
            return hstujit.torch.attention(*qkv, offsets, self.longest, contextual_seq_len=contexts, **says)

        self.expect_alike(attend(self.qkv, self.offsets, torch.tensor(self.contexts), None), self.one_by_one(attend))
        by_name = hstujit.torch.attention(
            *self.qkv, self.offsets, self.longest, num_contexts=torch.tensor(self.contexts), **says
        )
        self.assertTrue(torch.equal(by_name, attend(self.qkv, self.offsets, torch.tensor(self.contexts), None)))

    def test_of_the_last_rows(self):
        offsets = torch.tensor([0, 40, 100, 101])
        q, k, v = (tensor.detach() for tensor in self.qkv)
        delta = torch.cat([q[38:40], q[98:100], q[99:101]])
        contexts = torch.tensor([39, 2, 0])
        found = hstujit.torch.delta_hstu_mha(self.longest, 0.25, delta, k, v, offsets, contextual_seq_len=contexts)
        whole = hstujit.torch.hstu_mha(self.longest, 0.25, q, k, v, offsets, contextual_seq_len=contexts)
        self.assertTrue(torch.allclose(found[:4], torch.cat([whole[38:40], whole[98:100]]), atol=1e-6))
        plain = hstujit.torch.delta_hstu_mha(self.longest, 0.25, delta, k, v, offsets)
        self.assertFalse(torch.allclose(found[0], plain[0]), "row 38 of 40 is a context and sees the last row")

    def test_the_names_of_the_public_package_take_them(self):
        arguments = self.longest, 0.25, *self.qkv, self.offsets
        contexts = torch.tensor(self.contexts)
        found = generative_recommenders.hstu_mha(*arguments, contextual_seq_len=contexts)
        self.assertTrue(torch.equal(found, hstujit.torch.hstu_mha(*arguments, contextual_seq_len=contexts)))

    def test_a_half_of_a_layer_takes_them(self):
        generator = torch.Generator().manual_seed(3)
        x, uvqk = torch.randn(101, 16, generator=generator), 0.25 * torch.randn(16, 96, generator=generator)

        def attn_of(x, offsets, contexts, prefill=False):
            return hstujit.torch.hstu_preprocess_and_attention(
                x, torch.ones(16), torch.zeros(16), 1e-5, 2, 16, 8, uvqk, torch.zeros(96), self.longest, offsets, 0.25,
                True, None, 0, contexts, False, False, False, prefill,
            )[1]  # fmt: skip

        contexts = torch.tensor(self.contexts)
        wanted = []
        for b, number in enumerate(self.contexts):
            begin, end = self.offsets[b : b + 2].tolist()
            wanted.append(attn_of(x[begin:end], torch.tensor([0, end - begin]), number))
        for prefill in (False, True):
            found = attn_of(x, self.offsets, contexts, prefill)
            self.assertTrue(torch.allclose(found, torch.cat(wanted), atol=1e-5), prefill)

    def test_programs_take_them(self):
        """Sequences of 3, 0 and 5 rows: with 3, 0 and 3 contexts they are those of 3 for all."""
        every = {name: (operator, arguments, says) for name, operator, arguments, says in torch_cases.cases()}
        for name in ("norm_attention", "preprocess", "layer_fp32", "stack"):
            operator, arguments, says = every[name]
            arguments = [
                a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
                for a in arguments
            ]
            leaves = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
            results = []
            for contexts in ({"num_contexts": torch.tensor([3, 0, 3])}, {"contextual_seq_len": 3}, {}):
                outputs = getattr(torch.ops.hstujit, operator)(*arguments, **says, **contexts)
                out = outputs if isinstance(outputs, torch.Tensor) else outputs[-1 if name == "preprocess" else 0]
                results.append((out, *torch.autograd.grad(out.float().square().sum(), leaves, allow_unused=True)))
            for own, all_of_them in zip(*results[:2], strict=True):
                self.assertTrue(own is all_of_them or torch.allclose(own, all_of_them, atol=1e-4), name)
            self.assertFalse(torch.allclose(results[0][0], results[2][0], atol=1e-4), name)

    def test_a_graph_has_them(self):
        contexts = torch.tensor(self.contexts)

        def attend(contexts):
            return hstujit.torch.hstu_mha(self.longest, 0.25, *self.qkv, self.offsets, contextual_seq_len=contexts)

        compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
        self.expect_alike(compiled(contexts), attend(contexts))

    def test_a_traced_call_is_one_node(self):
        def attend(q, k, v, offsets, contexts):
            return hstujit.torch.hstu_mha(self.longest, 0.25, q, k, v, offsets, contextual_seq_len=contexts)

        def plain(q, k, v, offsets):
            return hstujit.torch.hstu_mha(self.longest, 0.25, q, k, v, offsets)

        for function, more in ((attend, (torch.tensor(self.contexts),)), (plain, ())):
            traced = torch.fx.symbolic_trace(function)
            self.assertEqual([node.op for node in traced.graph.nodes].count("call_function"), 1)
            arguments = (*self.qkv, self.offsets, *more)
            self.assertTrue(torch.equal(traced(*arguments), function(*arguments)))

    def test_errors_name_the_argument_that_was_given(self):
        def attend(contexts):
            return hstujit.torch.hstu_mha(self.longest, 0.25, *self.qkv, self.offsets, contextual_seq_len=contexts)

        for contexts, sentence in (
            (torch.zeros(4), "contextual_seq_len has dtype fp32; it must be int32 or int64"),
            (torch.zeros(3, dtype=torch.int64), r"contextual_seq_len.shape\[0\] is 3"),
            (
                torch.tensor([3, 0, 17, 2]),
                r"contextual_seq_len\[3\] is 2; it must be between 0 and the sequence's 1 row",
            ),
        ):
            self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, sentence, attend, contexts)


if __name__ == "__main__":
    unittest.main()
