"""Integers of layers and of the functions of public packages: tensors of other types, and counts out of their range."""

import unittest

from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases

    from hstujit.torch import STULayer, STULayerConfig, functional
    from hstujit.torch._arguments import integers_as

    ops = torch.ops.hstujit


def attention(num_targets, offsets):
    q = torch_cases.tensor(8, 2, 16)
    return functional.hstu_mha(8, 0.25, q, q, q, offsets, num_targets=num_targets)


def layer_of(**options):
    torch.manual_seed(3)
    config = STULayerConfig(32, 2, 8, 16, **{"output_dropout_ratio": 0.0, **options})
    return STULayer(config).eval()


@unittest.skipUnless(torch, "PyTorch is not installed")
class Counts(unittest.TestCase):
    def calls(self):
        x, layer = torch_cases.tensor(8, 32).bfloat16(), layer_of()
        yield attention
        yield lambda targets, offsets: layer(x, offsets.diff(), offsets, 8, targets)
        yield lambda targets, offsets: functional.add_positional_embeddings(
            1.0, 8, x.float(), offsets, offsets.diff(), x.float(), targets, False
        )

    def test_what_is_no_integer_is_refused(self):
        for call in self.calls():
            for targets in ([1.9, 0.0, 1.0], [True, False, True], [1j, 0, 1]):
                for offsets in (torch_cases.offsets(), torch_cases.offsets().int()):
                    words = "^num_targets has dtype .*; it must be int32 or int64$"
                    with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                        call(torch.tensor(targets), offsets)

    def test_what_int32_has_no_room_for_is_refused(self):
        for call in self.calls():
            words = r"^num_targets\[2\] is 2147483647; it must be between 0 and the sequence's 5 rows$"
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                call(torch.tensor([1, 0, 2**32 + 1]), torch_cases.offsets().int())

    def test_integers_of_any_type_are_taken(self):
        for call in self.calls():
            expected = call(torch.tensor([1, 0, 2]), torch_cases.offsets())
            for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
                for offsets in (torch_cases.offsets(), torch_cases.offsets().int()):
                    self.assertTrue(torch.equal(call(torch.tensor([1, 0, 2], dtype=dtype), offsets), expected))

    def test_what_is_traced_stays_out_of_range(self):
        """As on a GPU, whose values are not waited for."""
        narrow = torch.compile(lambda t: integers_as("t", t, torch.int32), backend="aot_eager", fullgraph=True)
        wide = torch.tensor([5, 2**32 + 1, -(2**32)])
        self.assertEqual(narrow(wide).tolist(), [5, 2**31 - 1, -(2**31)])

    def test_times_are_integers(self):
        x, offsets = torch_cases.tensor(8, 16), torch_cases.offsets()
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^timestamps has dtype fp32"):
            functional.add_timestamp_positional_embeddings(
                1.0, 8, 1, x, x, offsets, offsets.diff(), x, torch.ones(8), None, False
            )


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layers(unittest.TestCase):
    def test_none_alone_is_the_default_of_alpha(self):
        self.assertEqual(layer_of(attn_alpha=0.0)._alpha, 0.0)
        self.assertEqual(layer_of()._alpha, 0.25)
        self.assertEqual(layer_of(attn_alpha=0.0).instances(training=8)[0]["alpha"], 0.0)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Sizes(unittest.TestCase):
    """Sizes of outputs are checked before there is one."""

    def test_offsets_that_say_how_many_rows_an_output_has(self):
        x = torch_cases.tensor(8, 16)
        none = torch.tensor([0, 0])
        calls = {
            "seq_offsets": lambda offsets: ops.dense_to_jagged(x, offsets, 8),
            "offsets_left": lambda offsets: ops.split_2d_jagged(x, offsets, none),
            "kv_caching_offsets": lambda offsets: ops.update_kv_cache(x, offsets, none, x, attn_dim=16, hidden_dim=16),
        }
        for name, call in calls.items():
            for last, words in ((-5, "it must be at least 0"), (2**40, "it must be at most "), (2**62, "at most ")):
                with self.assertRaisesRegex(errors.InvalidArgumentError, rf"^{name}\[1\] is {last}; .*{words}"):
                    call(torch.tensor([0, last]))
            with self.assertRaisesRegex(errors.InvalidArgumentError, rf"^{name}.shape\[0\] is 0; it must be B\+1"):
                call(torch.zeros(0, dtype=torch.int64))

    def test_numbers(self):
        x, one = torch_cases.tensor(8, 16), torch.tensor([0, 8])
        for length in (-1, 2**28 + 1, 2**62):
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"^max_len is {length}; it must be at "):
                ops.jagged_to_padded_dense(x, one, length)
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"^delta_size is {length}; it must be at "):
                ops.construct_full_kv(x, x, one, length, x, x, attn_dim=16, hidden_dim=16)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^dense_to_jagged: out would have the shape"):
            ops.dense_to_jagged(x, one, 8, out_rows=2**62)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^out_rows is -1; it must be at least 0"):
            ops.dense_to_jagged(x, one, 8, out_rows=-1)
