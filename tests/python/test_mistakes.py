"""Bad input: an exception with a sentence that names the argument, its value and what is allowed."""

import fractions
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
from support import OFFSETS, ROWS, random
from torch_support import torch

import hstujit
from hstujit import errors

CONFIG = [{"name": "a", "op": "silu", "width": 512, "rows": 30}]


class Wrong:
    """Speaks DLPack badly."""

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        return "no capsule"


class Elsewhere(Wrong):
    def __dlpack_device__(self):
        return 10, 0  # a ROCm device


class Raising:
    """An array whose device, or whose data, is an error."""

    def __init__(self, device, key):
        self.device, self.key = device, key

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **options):
        raise KeyError(self.key)


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.q, self.k = random(ROWS, 2, 64), random(ROWS, 2, 64, seed=1)
        self.v = random(ROWS, 2, 32, seed=2)

    def refused(self, kind, *words, **changes):
        arguments = {
            "q": self.q, "k": self.k, "v": self.v, "seq_offsets": OFFSETS, "max_seq_len": 8, "alpha": 0.5, **changes
        }  # fmt: skip
        with self.assertRaises(kind) as raised:
            hstujit.attention(**arguments)
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_arguments_that_are_missing_or_unknown(self):
        with self.assertRaisesRegex(
            TypeError, "^hstu_attention: missing a required argument: 'alpha'; it takes q, k, "
        ):
            hstujit.attention(self.q, self.k, self.v, OFFSETS, 8)
        with self.assertRaisesRegex(AttributeError, "no attribute 'cumsum', did you mean 'complete_cumsum'?"):
            hstujit.cumsum  # noqa: B018
        unexpected = "got an unexpected keyword argument"
        for wrong, meant in (
            ("window", ", did you mean 'max_attn_len'?"),
            ("softmax_scale", ", did you mean 'alpha'?"),
            ("cusal", ", did you mean 'causal'?"),
            ("seq_lens", ", did you mean 'seq_offsets'?"),
            ("zzz", ""),
        ):
            self.refused(TypeError, f"{unexpected} '{wrong}'{meant}; it takes q,", **{wrong: 3})
        with self.assertRaisesRegex(TypeError, "'epsilon', did you mean 'eps'"):
            hstujit.layer_norm(self.q[:, 0], epsilon=1e-5)
        self.assertIn("at least 1", hstujit.attention.__doc__.split("max_seq_len: ")[1].split("\n")[0])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "offsets_right is missing"):
            hstujit.concat_2d_jagged(self.q[:, 0], self.k[:, 0], offsets_left=OFFSETS)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "offsets_left is not used"):
            hstujit.concat_2d_jagged(
                self.q[:, 0], self.k[:, 0], offsets_left=OFFSETS, max_len_left=3, offsets_right=OFFSETS
            )
        with self.assertRaisesRegex(errors.InvalidArgumentError, "dposition_embeddings_weight_rows is missing"):
            hstujit.add_positional_embeddings_backward(self.q[:, 0], 1.0, OFFSETS)

    def test_data_types(self):
        kinds = "bf16, fp16 or fp32"
        self.refused(errors.InvalidArgumentError, f"q has dtype fp64; it must be {kinds}", q=self.q.astype(float))
        self.refused(errors.InvalidArgumentError, "k has dtype fp16", "fp32", k=self.k.astype(numpy.float16))
        wrong = OFFSETS.astype(numpy.float32)
        words = "seq_offsets has dtype fp32; it must be int32 or int64"
        self.refused(errors.InvalidArgumentError, words, seq_offsets=wrong)
        self.refused(
            errors.InvalidArgumentError,
            "num_targets has dtype fp32; it must be int64, as seq_offsets",
            num_targets=numpy.array([1, 1, 0], dtype=numpy.float32),
        )
        self.refused(errors.InvalidArgumentError, "q has dtype complex128", kinds, q=self.q.astype(complex))

    def test_shapes(self):
        self.refused(errors.InvalidArgumentError, "q has rank 2", "(L, heads, attn_dim)", q=self.q[:, 0])
        self.refused(errors.InvalidArgumentError, "k.shape[0] is 8", "L = 7", q=self.q[:7])
        self.refused(errors.InvalidArgumentError, "seq_offsets has rank 2", seq_offsets=OFFSETS[None])
        self.refused(errors.InvalidArgumentError, "attn_scale", "(L) or (1)", attn_scale=random(2, 2))
        self.refused(errors.InvalidArgumentError, "num_targets", num_targets=OFFSETS)
        wanted = "q.shape[2] is 260; it must be attn_dim, from 1 to 256"
        self.refused(errors.InvalidArgumentError, wanted, q=random(ROWS, 2, 260), k=random(ROWS, 2, 260))
        self.refused(errors.InvalidArgumentError, "heads, from 1 to 1024", q=random(ROWS, 0, 64))
        words = "rab_heads is 3", "; rab_heads is rab.shape[1]"
        self.refused(errors.InvalidConfigError, *words, rab=random(1, 3, 8, 8))

    def test_strides(self):
        wide = random(ROWS, 2, 128)
        self.refused(errors.InvalidArgumentError, "q.strides[2] is 2", "must be 1", q=wide[..., ::2])
        self.refused(errors.InvalidArgumentError, "strides", k=self.k[::-1])

    def test_addresses(self):
        """An array of numpy may begin anywhere; it is named, and no parameter that nobody gave."""
        rows = numpy.zeros(4 * 64 + 1, numpy.uint8)[1:].view(numpy.float32).reshape(4, 16)
        weight, wanted = numpy.ones(16, numpy.float32), "no multiple of 4 bytes, an element of fp32; it must be one$"
        for name, call in (
            ("x", lambda: hstujit.layer_norm(rows, weight, weight)),
            ("bias", lambda: hstujit.layer_norm(rows.copy(), weight, rows[0])),
            ("out", lambda: hstujit.silu(rows.copy(), out=rows)),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"^{name} begins at an address that is {wanted}"):
                call()

    def test_strides_and_elements_that_are_shared(self):
        x = random(4, 16)
        expected = hstujit.silu(x[:1])
        repeated = numpy.lib.stride_tricks.as_strided(x, (4, 16), (0, 4))
        self.assertTrue((hstujit.silu(repeated) == expected).all())
        for words, call in (
            (r"x.strides\[0\] is -16; it must be 0 or more", lambda: hstujit.silu(x[::-1])),
            ("share no element", lambda: hstujit.silu(x, out=x)),
            ("out", lambda: hstujit.silu(x.copy(), out=repeated)),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                call()

    def test_values_of_offsets(self):
        self.refused(errors.InvalidArgumentError, "seq_offsets[1] is 9", seq_offsets=numpy.array([0, 9, 7]))
        self.refused(errors.InvalidArgumentError, "num_targets", num_targets=numpy.array([1, 1, -1]))

    def test_targets_of_more_rows_than_a_sequence(self):
        """As docs/ops-sequences.md says: two rows each may be more, as many as there are rows may not."""
        rows, table, offsets = random(3, 16), random(4, 16, seed=1), numpy.array([0, 3])

        def embedded(targets, **more):
            given = numpy.array([targets])
            return hstujit.add_positional_embeddings(rows, table, 1.0, offsets, num_targets=given, **more)

        numpy.testing.assert_array_equal(embedded(2, interleave_targets=True), rows + table[0])
        for interleaved in (False, True):
            with self.assertRaisesRegex(errors.InvalidArgumentError, r"num_targets\[0\] is 5"):
                embedded(5, interleave_targets=interleaved)

    def test_numbers(self):
        self.refused(errors.InvalidArgumentError, "max_seq_len is '8'", "an integer", max_seq_len="8")
        self.refused(errors.InvalidArgumentError, "max_seq_len is 8.5", "an integer", max_seq_len=8.5)
        self.refused(errors.InvalidArgumentError, "64 bits", max_seq_len=2**70)
        for length in (True, numpy.bool_(True), numpy.array([8]), b"8", numpy.array("8")):
            self.refused(errors.InvalidArgumentError, "max_seq_len is ", "; it must be an integer", max_seq_len=length)
        for factor in ("0.5", b"0.5", bytearray(b"1_0"), numpy.array("0.5"), numpy.array([0.5]), True, 1j, 10**400):
            self.refused(errors.InvalidArgumentError, "alpha is ", "; it must be a real number", alpha=factor)
        self.refused(errors.InvalidArgumentError, "268435456", max_seq_len=2**40)
        self.refused(errors.InvalidArgumentError, "alpha is 'x'", "a real number", alpha="x")
        self.refused(errors.InvalidArgumentError, "finite", alpha=float("nan"))

    def test_numbers_of_other_kinds_are_taken(self):
        expected = hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.5)
        for length, factor in ((numpy.int32(8), numpy.float32(0.5)), (numpy.array(8), numpy.array(0.5)),
                               (numpy.uint64(8), fractions.Fraction(1, 2))):  # fmt: skip
            out = hstujit.attention(self.q, self.k, self.v, OFFSETS, length, factor, causal=numpy.bool_(True))
            self.assertTrue((out == expected).all())

    def test_offsets_that_say_how_many_rows_an_output_has(self):
        x = random(ROWS, 16)
        calls = {
            "seq_offsets": lambda offsets: hstujit.dense_to_jagged(x, offsets, max_len=ROWS),
            "offsets_left": lambda offsets: hstujit.split_2d_jagged(x, offsets, numpy.array([0, 0])),
            "kv_caching_offsets": lambda offsets: hstujit.update_kv_cache(
                x, offsets, numpy.array([0, 0]), x, attn_dim=16, hidden_dim=16
            ),
        }
        for name, call in calls.items():
            for last, words in ((-5, "it must be at least 0"), (2**40, "it must be at most "), (2**62, "at most ")):
                with self.assertRaisesRegex(errors.InvalidArgumentError, rf"^{name}\[1\] is {last}; .*{words}"):
                    call(numpy.array([0, last]))
            with self.assertRaisesRegex(errors.InvalidArgumentError, rf"^{name}.shape\[0\] is 0; it must be B\+1"):
                call(numpy.zeros(0, numpy.int64))

    def test_sizes_that_are_too_large(self):
        x, one = random(ROWS, 16), numpy.array([0, ROWS])
        for rows, words in ((2**64, "out_rows is 18446744073709551616; it must be an integer of 64 bits"),
                            (2**62, "dense_to_jagged: out would have the shape")):  # fmt: skip
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                hstujit.dense_to_jagged(x, one, ROWS, out_rows=rows)
        for length in (2**28 + 1, 2**62):
            with self.assertRaisesRegex(errors.InvalidArgumentError, "max_len is .*; it must be at most 268435456"):
                hstujit.jagged_to_padded_dense(x, one, length)
            with self.assertRaisesRegex(errors.InvalidArgumentError, "delta_size is .*; it must be at most 268435456"):
                hstujit.construct_full_kv(x, x, one, length, x, x, attn_dim=16, hidden_dim=16)
        with self.assertRaisesRegex(errors.OutOfMemoryError, "no memory for an array of shape .*, 16.* fp32"):
            hstujit.dense_to_jagged(x, one, ROWS, out_rows=2**50)

    def test_sizes_of_outputs(self):
        x = random(ROWS, 16)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "max_len is -3; it must be at least 0"):
            hstujit.jagged_to_padded_dense(x, OFFSETS, -3)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "out_rows is 'x'; it must be an integer"):
            hstujit.dense_to_jagged(random(15, 16), OFFSETS, 5, out_rows="x")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "out_rows is -1"):
            hstujit.dense_to_jagged(random(15, 16), OFFSETS, 5, out_rows=-1)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "L is 8; it must be at least B.max_len_right = 12"):
            hstujit.split_2d_jagged(x, offsets_left=OFFSETS, max_len_right=4)

    def test_parameters(self):
        self.refused(errors.InvalidConfigError, "causal is 3", "true or false", causal=3)
        self.refused(errors.InvalidConfigError, "max_attn_len is 0.5", "an integer", max_attn_len=0.5)
        self.refused(errors.InvalidConfigError, "score is 1", "silu", score=1)
        self.refused(errors.InvalidConfigError, 'score is "exp"', "silu", score="exp")
        self.refused(errors.InvalidConfigError, "max_attn_len", max_attn_len=-2)

    def test_values_are_shown_within_bounds(self):
        """Whatever a value is, the sentence about it is one of the library's, on one line and of some length."""
        huge, long = 10**5000, "x" * 10**6

        class NoRepr:
            def __repr__(self):
                raise RuntimeError("no")

        config = {"name": "a", "op": "silu", "width": huge, "rows": 30}
        op = {"op": "silu", "width": 512}
        calls = [
            lambda: hstujit.attention(self.q, self.k, self.v, OFFSETS, huge, 0.5),
            lambda: hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, huge),
            lambda: hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.5, max_attn_len=huge),
            lambda: hstujit.prewarm(CONFIG, jobs=huge),
            lambda: hstujit.prewarm(CONFIG, shard=(huge, 1)),
            lambda: hstujit.run(CONFIG, seed=-huge),
            lambda: hstujit.Op({**op, "width": huge}),
            lambda: hstujit.Op({**op, "width": [huge]}),
            lambda: hstujit.Op({**op, long: 1}),
            lambda: hstujit.Op({**op, "width": 10**400}),
            lambda: hstujit.Op(op, backend="host").launch(**{long: 1}),
            lambda: hstujit.Op(op, backend="host").launch(x=self.q, y=self.q, stream=huge),
            lambda: hstujit.Op(op, backend="host").prepare(huge),
            lambda: hstujit.Config([config]),
            lambda: hstujit.Config([{**CONFIG[0], huge: 1}]),
            lambda: hstujit.Config(huge),
            lambda: hstujit.Cache().prune(max_bytes=huge),
            lambda: hstujit.Context(on_miss=long),
            lambda: hstujit.Context(on_miss=NoRepr()),
        ]
        for alpha in (long, [0] * 10**5, NoRepr(), "\n", numpy.zeros(10**4), 10**400):
            calls.append(lambda alpha=alpha: hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, alpha))
        for score in (long, "\u202e", huge):
            calls.append(lambda score=score: hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.5, score=score))
        for index, call in enumerate(calls):
            with self.subTest(index), self.assertRaises(errors.Error) as raised:
                call()
            self.assertLess(len(str(raised.exception)), 3000, index)
            self.assertTrue(str(raised.exception).isprintable(), index)
        for call in (
            lambda: hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.5, **{long: 1}),
            lambda: getattr(hstujit, long),
        ):
            with self.assertRaises((TypeError, AttributeError)) as raised:
                call()
            self.assertLess(len(str(raised.exception)), 3000)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "max_seq_len is an integer of 16610 bits; it must be"):
            hstujit.attention(self.q, self.k, self.v, OFFSETS, huge, 0.5)

    def test_every_sentence_shows_values_by_one_function(self):
        """A repr has neither bounds nor must it succeed; _words.shown takes care of both."""
        package = pathlib.Path(hstujit.__file__).parent
        files = sorted(package.rglob("*.py"))
        self.assertGreater(len(files), 20)
        for file in files:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                self.assertNotIn("!r}", line, f"{file}:{number}")

    def test_masked_arrays_are_refused(self):
        masked = numpy.ma.masked_array(self.q, mask=self.q > 0)
        self.refused(errors.InvalidArgumentError, "q is a masked array", "MaskedArray.filled()", q=masked)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "x is a masked array"):
            hstujit.silu(masked[:, 0])

    def test_a_type_has_one_name(self):
        """In a call, and in a launch."""
        op = hstujit.Op({"op": "silu", "width": 64, "dtype": "fp32"}, backend="host")
        op.prepare(1)
        x = random(4, 64)
        for dtype, name in (
            (numpy.float64, "fp64"),
            (numpy.float16, "fp16"),
            (bool, "bool"),
            (numpy.uint8, "uint8"),
            (numpy.int16, "int16"),
            (numpy.complex64, "complex64"),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"x has dtype {name}; it must be fp32"):
                op.launch(x=x.astype(dtype), out=x)
            if name != "fp16":
                with self.assertRaisesRegex(errors.InvalidArgumentError, f"x has dtype {name}; it must be bf16"):
                    hstujit.silu(x.astype(dtype))

    def test_arrays(self):
        self.refused(errors.InvalidArgumentError, "q is of type list", "__dlpack__", q=[[1.0]])
        self.refused(errors.InvalidArgumentError, "q is of type float", q=0.5)
        self.refused(errors.InvalidArgumentError, "num_targets is of type int; it must be an array", num_targets=3)
        self.refused(errors.InvalidArgumentError, "q is missing", q=None)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^x is missing; layer_norm is given no array at all$"):
            hstujit.layer_norm(None, None, None)
        self.refused(errors.InvalidArgumentError, "q is missing", q=None, k=None, v=None, seq_offsets=None)
        self.refused(errors.InvalidArgumentError, "q is on a device of DLPack type 10", q=Elsewhere())
        self.refused(errors.InvalidArgumentError, "k cannot be exchanged", k=Wrong())
        for device in (None, ("x", "y"), (1,), KeyError("device")):
            words = "q cannot be exchanged by DLPack: "
            self.refused(errors.InvalidArgumentError, words, q=Raising(device, None))
        words = "k cannot be exchanged by DLPack: KeyError: 'k'"
        self.refused(errors.InvalidArgumentError, words, k=Raising((1, 0), "k"))

    def test_outputs(self):
        self.refused(errors.InvalidArgumentError, "out.shape[2] is 64", "32", out=numpy.empty_like(self.q))
        self.refused(errors.InvalidArgumentError, "out has 2 arrays", out=(self.v, self.v))
        with self.assertRaisesRegex(errors.InvalidArgumentError, "out has 1 arrays; layer_norm_backward writes dx"):
            hstujit.layer_norm_backward(self.q[:, 0], self.q[:, 0], out=(numpy.empty_like(self.q[:, 0]),))
        read_only = numpy.empty_like(self.v)
        read_only.flags.writeable = False
        self.refused(errors.InvalidArgumentError, "read-only", out=read_only)
        self.refused(errors.InvalidArgumentError, "out", "v", out=self.v)

    def test_read_only_inputs_are_none(self):
        self.q.flags.writeable = False
        self.assertEqual(hstujit.attention(self.q, self.k, self.v, OFFSETS, 8, 0.5).shape, (ROWS, 2, 32))

    def test_columns_one_by_one_in_memory(self):
        """As transposed weights are."""
        x, weight = numpy.zeros((4, 64), numpy.float32), numpy.zeros((48, 64), numpy.float32)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "mat2.*; the innermost stride must be 1$") as raised:
            hstujit.addmm(x, weight.T, 1.0)
        self.assertEqual((raised.exception.argument, raised.exception.allowed), ("mat2.strides[1]", "1"))


class Widths(unittest.TestCase):
    """Integers that the library's structs have no room for."""

    def refused(self, name, call):
        with self.assertRaisesRegex(errors.InvalidArgumentError, f"^{name} is -?[0-9]+; it must be an integer of "):
            call()

    def test_of_commands(self):
        for value in (2**32 + 1, -(2**32)):
            self.refused("jobs", lambda value=value: hstujit.prewarm(CONFIG, arch="H200", jobs=value))
            self.refused("device", lambda value=value: hstujit.run(CONFIG, backend="host", device=value))
            self.refused("repeats", lambda value=value: hstujit.run(CONFIG, backend="host", repeats=value))
        self.refused("shard_index", lambda: hstujit.prewarm(CONFIG, arch="H200", shard=(2**32, 2**32 + 1)))
        self.refused("max_rows", lambda: hstujit.run(CONFIG, backend="host", max_rows=2**64 + 5))
        for seed in (-1, 2**64 + 7):
            self.refused("seed", lambda seed=seed: hstujit.run(CONFIG, backend="host", seed=seed))
        self.assertEqual(hstujit.run(CONFIG, backend="host", seed=2**64 - 1)["seed"], 2**64 - 1)

    def test_of_an_op_whose_launches_have_a_length(self):
        op = hstujit.Op({"op": "hstu_attention", "heads": 2, "attn_dim": 8, "hidden_dim": 8}, backend="host")
        with self.assertRaisesRegex(
            errors.InvalidArgumentError, "^max_seq_len is None; launches of this op have one, "
        ):
            op.prepare()
        op.prepare(16)

    def test_of_an_op(self):
        op = hstujit.Op({"op": "silu", "width": 8, "dtype": "fp32"}, backend="host")
        self.refused("max_seq_len", lambda: op.prepare(2**64 + 16))
        self.refused("device", lambda: op.prepare(16, device=2**32))
        op.prepare()
        x = random(1, 8)
        for stream in (-1, 2**70):
            self.refused("stream", lambda stream=stream: op.launch(x=x, out=x.copy(), stream=stream))
        with self.assertRaisesRegex(errors.InvalidArgumentError, "stream is 'a'; it must be an integer"):
            op.launch(x=x, out=x.copy(), stream="a")


class Environment(unittest.TestCase):
    """A variable that is not allowed is named by the first call, which makes the default context."""

    def test_the_first_call_names_it(self):
        code = "import numpy, hstujit; hstujit.silu(numpy.ones((2, 8), numpy.float32))"
        self.refused(code, "ON_MISS=never", "COMPILE_JOBS=x", "CACHE_MAX_BYTES=x", "REMOTE_CACHE=x", "FROZEN=/nowhere")

    def test_the_first_call_of_an_operator_of_pytorch_names_it(self):
        if torch:
            code = "import torch, hstujit.torch; torch.ops.hstujit.silu(torch.ones(2, 8))"
            self.refused(code, "CHECK=7", "OVERRIDE=x")

    def refused(self, code, *settings):
        for setting in settings:
            name, _, value = setting.partition("=")
            environment = {**os.environ, f"HSTUJIT_{name}": value}
            run = subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True)
            with self.subTest(setting):
                last = run.stderr.splitlines()[-1]
                self.assertRegex(last, rf"^hstujit\.errors\.\w+: HSTUJIT_{name}\b")


class Texts(unittest.TestCase):
    def test_lone_surrogates(self):
        for call in (
            lambda text: hstujit.Context(cache_dir=text),
            lambda text: hstujit.prewarm(CONFIG, arch=text),
            lambda text: hstujit.explain(CONFIG, arch="H200", op=text),
            lambda text: hstujit.Cache().export(text),
            lambda text: hstujit.Config.parse(text),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, r"'H\\ud800' holds a character that has no encod"):
                call("H\ud800")
        with self.assertRaises(errors.InvalidConfigError):
            hstujit.check_config([{**CONFIG[0], "name": "H\ud800"}])

    def test_a_path_that_is_no_utf8(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "\udcff"
            self.assertEqual(hstujit.Cache(hstujit.Context(cache_dir=path)).path, path)
