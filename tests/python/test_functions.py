"""Operators on numpy arrays, on the host backend."""

import threading
import unittest

import numpy
from support import OFFSETS, ROWS, attention, closeness, random

import hstujit
from hstujit import _interface


class Attention(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = (random(ROWS, 2, size, seed=seed) for seed, size in enumerate((64, 64, 32)))

    def test_agrees_with_its_definition(self):
        targets = numpy.array([1, 0, 2])
        for given in (None, targets):
            expected = attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, given)
            out = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, num_targets=given)
            self.assertLess(closeness(out, expected), 1e-5)

    def test_is_the_operator_of_the_long_name(self):
        self.assertIs(hstujit.attention, hstujit.hstu_attention)
        self.assertIs(hstujit.operators.hstu_attention, hstujit.hstu_attention)

    def test_takes_views_of_one_matrix_as_they_are(self):
        matrix = random(ROWS, 2, 160)
        q, k, v = matrix[..., :64], matrix[..., 64:128], matrix[..., 128:]
        expected = attention(q, k, v, OFFSETS, 8, 0.125)
        self.assertLess(closeness(hstujit.attention(q, k, v, OFFSETS, 8, 0.125), expected), 1e-5)

    def test_takes_addresses_that_are_multiples_of_an_element_alone(self):
        storage = numpy.zeros(self.q.size + 1, dtype=numpy.float32)
        shifted = storage[1:].reshape(self.q.shape)
        shifted[:] = self.q
        expected = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125)
        numpy.testing.assert_array_equal(hstujit.attention(shifted, self.k, self.v, OFFSETS, 8, 0.125), expected)

    def test_writes_to_out(self):
        out = numpy.zeros((ROWS, 2, 32), dtype=numpy.float32)
        returned = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, out=out)
        self.assertIs(returned, out)
        self.assertLess(closeness(out, attention(self.q, self.k, self.v, OFFSETS, 8, 0.125)), 1e-5)

    def test_half_precision_and_offsets_of_32_bits(self):
        q, k, v = (array.astype(numpy.float16) for array in (self.q, self.k, self.v))
        out = hstujit.attention(q, k, v, OFFSETS.astype(numpy.int32), 8, 0.125)
        self.assertEqual(out.dtype, numpy.float16)
        self.assertLess(closeness(out, attention(q, k, v, OFFSETS, 8, 0.125)), 2e-3)

    def test_factors_of_rows_and_one_for_all(self):
        plain = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125)
        for factors in (numpy.full(ROWS, 0.5, numpy.float32), numpy.array([0.5], numpy.float32)):
            out = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, attn_scale=factors)
            self.assertLess(closeness(out, plain * 4), 1e-5)

    def test_a_length_that_scales_is_refused_outside_of_its_range(self):
        def call(length):
            return hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, scaling_seqlen=length)

        for length, wanted in ((-2, "-1 or more"), (2**28 + 1, "at most 268435456"), (2**63 - 1, "at most 268435456")):
            with self.assertRaisesRegex(
                hstujit.errors.InvalidArgumentError, f"scaling_seqlen is {length}; .* {wanted}"
            ):
                call(length)
        numpy.testing.assert_array_equal(call(-1), call(0))
        numpy.testing.assert_array_equal(call(8), call(0))
        self.assertGreater(numpy.abs(call(2**28)).max(), 0)

    def test_a_bias_for_fewer_heads(self):
        bias = random(3, 1, 8, 8)
        shared = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, rab=bias)
        each = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125, rab=numpy.repeat(bias, 2, axis=1))
        numpy.testing.assert_array_equal(shared, each)

    def test_gradients_agree_with_differences(self):
        q, dout = self.q.astype(float), random(ROWS, 2, 32, seed=9)
        dq = hstujit.attention_backward(self.q, self.k, self.v, dout, OFFSETS, 8, 0.125)[0]
        step, direction = 1e-4, random(*q.shape, seed=8).astype(float)
        up, down = (attention(q + s * direction, self.k, self.v, OFFSETS, 8, 0.125) for s in (step, -step))
        self.assertAlmostEqual((dq * direction).sum(), ((up - down) * dout).sum() / (2 * step), places=3)

    def test_threads_agree(self):
        expected = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125)
        outs = []

        def work():
            for _ in range(20):
                outs.append(hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.125))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(outs), 80)
        for out in outs:
            numpy.testing.assert_array_equal(out, expected)


class Others(unittest.TestCase):
    def test_norms(self):
        x, weight, bias = random(5, 24), random(24, seed=1), random(24, seed=2)
        normed = (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-5)
        self.assertLess(closeness(hstujit.layer_norm(x), normed), 1e-5)
        self.assertLess(closeness(hstujit.layer_norm(x, weight, bias), normed * weight + bias), 1e-5)
        self.assertLess(closeness(hstujit.layer_norm(x, weight), normed * weight), 1e-5)
        root = numpy.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
        self.assertLess(closeness(hstujit.rms_norm(x, weight), x / root * weight), 1e-5)

    def test_rows_of_two_tensors_and_back(self):
        left, right, right_offsets = random(ROWS, 16), random(6, 16, seed=1), numpy.array([0, 2, 5, 6])
        together = hstujit.concat_2d_jagged(left, right, offsets_left=OFFSETS, offsets_right=right_offsets)
        self.assertEqual(together.shape, (ROWS + 6, 16))
        numpy.testing.assert_array_equal(together[:5], numpy.concatenate([left[:3], right[:2]]))
        back = hstujit.split_2d_jagged(together, offsets_left=OFFSETS, offsets_right=right_offsets)
        numpy.testing.assert_array_equal(back[0], left)
        numpy.testing.assert_array_equal(back[1], right)

    def test_a_dense_side_says_how_many_rows_the_other_has(self):
        left, right = random(ROWS, 16), random(6, 16, seed=1)
        together = hstujit.concat_2d_jagged(left, right, offsets_left=OFFSETS, max_len_right=2)
        back = hstujit.split_2d_jagged(together, offsets_left=OFFSETS, max_len_right=2)
        numpy.testing.assert_array_equal(back[0], left)
        numpy.testing.assert_array_equal(back[1], right)
        only = hstujit.split_2d_jagged(together, offsets_left=OFFSETS, max_len_right=2, left_only=True)
        numpy.testing.assert_array_equal(only, left)

    def test_padded_and_back(self):
        values = random(ROWS, 8)
        dense = hstujit.jagged_to_padded_dense(values, OFFSETS, 5, padding_value=7)
        self.assertEqual(dense.shape, (15, 8))
        self.assertTrue((dense[5:10] == 7).all())
        numpy.testing.assert_array_equal(hstujit.dense_to_jagged(dense, OFFSETS, 5), values)
        cut = hstujit.dense_to_jagged(dense, OFFSETS, 5, out_rows=ROWS + 2)
        numpy.testing.assert_array_equal(cut[:ROWS], values)
        self.assertEqual(cut.shape, (ROWS + 2, 8))

    def test_what_becomes_a_cache_and_what_stands_behind_one(self):
        k, v = random(ROWS, 2 * 16), random(ROWS, 2 * 8, seed=1)
        kept = numpy.array([0, 2, 2, 5])
        dims = {"heads": 2, "attn_dim": 16, "hidden_dim": 8}
        k_cache, v_cache = hstujit.update_kv_cache(k, kept, OFFSETS - kept, v, **dims)
        numpy.testing.assert_array_equal(k_cache, k[[0, 1, 3, 4, 5]])
        numpy.testing.assert_array_equal(v_cache, v[[0, 1, 3, 4, 5]])
        delta_k, delta_v = random(3, 2 * 16, seed=2), random(3, 2 * 8, seed=3)
        full_k, full_v = hstujit.construct_full_kv(k_cache, delta_k, kept, 1, v_cache, delta_v, **dims)
        numpy.testing.assert_array_equal(full_k, numpy.stack([*k[:2], delta_k[0], delta_k[1], *k[3:6], delta_k[2]]))
        self.assertEqual(full_v.shape, (8, 16))

    def test_times_from_one_end_of_their_type_to_the_other(self):
        first, last = -(2**63), 2**63 - 1
        times = [first, last, 0, -1, first + 1, last - 1, first, last]
        offsets = numpy.array([0, 5, 8], dtype=numpy.int64)
        rows, ages = numpy.zeros((8, 8), dtype=numpy.float32), numpy.arange(10, dtype=numpy.float32)
        tables = numpy.zeros((1, 8), dtype=numpy.float32), numpy.repeat(ages[:, None], 8, 1)
        found = hstujit.add_timestamp_positional_embeddings(
            rows,
            *tables,
            1.0,
            1e18,
            offsets,
            timestamps=numpy.array(times, dtype=numpy.int64),
            max_contextual_seq_len=0,
        )
        ends = [times[4]] * 5 + [times[7]] * 3
        expected = [int(max(min(end - time, last), 0) ** 0.5 / 1e9) for end, time in zip(ends, times)]
        self.assertEqual(found[:, 0].tolist(), expected)

    def test_offsets_of_lengths(self):
        lengths = numpy.array([3, 0, 5], dtype=numpy.int32)
        numpy.testing.assert_array_equal(hstujit.complete_cumsum(lengths), OFFSETS)

    def test_a_norm_and_attention_in_one(self):
        x, weight, bias = random(ROWS, 2 * (32 + 2 * 64)), random(320, seed=1), random(320, seed=2)
        normed = hstujit.layer_norm(x, weight, bias)
        v, q, k = (part.reshape(ROWS, 2, -1) for part in numpy.split(normed, [64, 192], axis=1))
        expected = hstujit.attention(q, k, v, OFFSETS, 8, 0.125)
        out = hstujit.norm_attention(
            x, OFFSETS, 8, 0.125, weight=weight, bias=bias, heads=2, attn_dim=64, hidden_dim=32
        )
        self.assertLess(closeness(out, expected), 1e-5)

    def test_what_says_only_what_an_instance_is_stands_beside_what_takes_its_place(self):
        heads, width, rows = 2, 16, 7
        x, attn, dout = random(rows, 16), random(rows, heads * 8, seed=1), random(rows, 16, seed=2)
        weight, bias = random(16, heads * 32, seed=3), random(heads * 32, seed=4)
        layer = {
            "x": x, "input_norm_weight": numpy.ones(width, x.dtype), "input_norm_bias": numpy.zeros(width, x.dtype),
            "uvqk_weight": weight, "output_weight": random(3 * heads * 8, 16, seed=5), "attn": attn, "dout": dout,
            "output_norm_weight": numpy.ones(heads * 8, x.dtype), "output_norm_bias": numpy.zeros(heads * 8, x.dtype),
            "seq_offsets": numpy.array([0, 3, rows]), "max_seq_len": 4, "alpha": 0.1, "heads": heads,
            "attn_dim": 8, "hidden_dim": 8,
        }  # fmt: skip
        layer = {
            name: v.astype("float16") if getattr(v, "dtype", None) == "float32" else v for name, v in layer.items()
        }
        bias, x, weight = (array.astype("float16").astype("float32") for array in (bias, x, weight))
        normed = (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-6)
        uvqk = (normed.astype("float16").astype("float32") @ weight + bias).astype("float16")
        bias = bias.astype("float16")
        expected = hstujit.stu_layer_backward(**layer, uvqk_bias=bias)
        kept = hstujit.stu_layer_backward(**layer, uvqk_bias=bias, uvqk=uvqk)
        self.assertEqual(len(kept), len(expected))
        for ours, theirs in zip(kept, expected):
            numpy.testing.assert_allclose(
                ours.astype("float32"), theirs.astype("float32"), rtol=2e-2, atol=2e-2 * numpy.abs(theirs).max()
            )

    def test_bounds_are_as_short_as_they_may_be(self):
        self.assertIn("eps: added to the variance; float, at least 0.\n", hstujit.layer_norm.__doc__)
        self.assertIn("; int, at least 1, at most 268435456.\n", hstujit.attention.__doc__)

    def test_the_package_lists_what_is_for_its_users(self):
        listed = dir(hstujit)
        self.assertEqual({name for name in ("Any", "annotations", "did_you_mean", "shown") if name in listed}, set())
        self.assertLessEqual({*hstujit.__all__, "attention", "__version__"}, set(listed))

    def test_every_direction_of_every_operator_has_a_documented_function(self):
        names = _interface.interfaces()
        self.assertGreaterEqual(len(names), 30)
        for name, (op, direction) in names.items():
            function = getattr(hstujit, name)
            described = _interface.interface(op, direction)
            for argument in described.inputs:
                self.assertIn(argument.name, function.__signature__.parameters)
                self.assertIn(f"    {argument.name}: {argument.doc}", function.__doc__)
            self.assertIn(name, dir(hstujit))
