"""The functions with public names: what they take, and what they compute."""

import unittest

from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases

    from hstujit.torch import functional, generative_recommenders, tzrec


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
        with self.assertRaisesRegex(errors.InvalidArgumentError, "dropout_pr is 1.5; it must be a number from 0 to 1"):
            functional.hstu_mha(**arguments, dropout_pr=1.5)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "attn_func has dtype fp32"):
            functional.hstu_mha(**arguments, attn_func=torch.ones(1, 3, 8))
        with self.assertRaisesRegex(errors.InvalidConfigError, "max_attn_len is 2, but attn_func replaces it"):
            functional.hstu_mha(**arguments, max_attn_len=2, attn_func=torch.ones(1, 3, 8, dtype=torch.int32))

    def test_tensors_of_another_rank_or_none(self):
        x, weight = torch_cases.tensor(4, 16), torch_cases.tensor(16)
        offsets = torch.tensor([0, 4])
        for words, call in (
            ("dense has shape (4, 16); it must be (B, max_len, D)",
             lambda: functional.dense_to_jagged(x, offsets)),
            ("num_heads is 0; allowed: ",
             lambda: functional.hstu_norm_mul_dropout(x, x, weight, weight, 1e-5, 0.0, False, group_norm=True,
                                                      num_heads=0)),
            ("linear_dim is 3; it must be 8, D / num_heads",
             lambda: functional.hstu_norm_mul_dropout(x, x, weight, weight, 1e-5, 0.0, False, group_norm=True,
                                                      num_heads=2, linear_dim=3)),
            ("jagged has rank 0, shape ()", lambda: functional.jagged_dense_broadcast_add(4, offsets, x[0, 0], x)),
        ):  # fmt: skip
            with self.assertRaises(errors.Error) as raised:
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
        for lengths, words in (((-1, -1), "must be 0, B = 0 times -"), ((2, -1), "max_len_right is -1; it must be ")):
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                tzrec.concat_2D_jagged(left, right, *lengths, None, None)
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
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
