"""Names in sentences, signatures and docstrings: names of Python, in the order of a call."""

import copy
import inspect
import pathlib
import pickle
import pydoc
import re
import unittest

import numpy

import hstujit
from hstujit import _interface, errors
from hstujit._library import suggested

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Suggestions(unittest.TestCase):
    def test_they_are_those_of_the_library(self):
        for wrong, names, meant in (
            ("num_head", ["heads", "alpha"], ["heads"]),
            ("wieght", ["x", "weight"], ["weight"]),
            ("cpu", ["cuda", "host"], ["host"]),
            ("head_dim", ["attention_dim", "hidden_dim", "num_heads"], ["hidden_dim", "attention_dim"]),
            ("something", ["x", "weight"], []),
            ("_" * 2**20, ["hidden_dim", "op"], []),
        ):
            with self.subTest(wrong=wrong[:20]):
                self.assertEqual(suggested(wrong, names), meant)


class Sentences(unittest.TestCase):
    def test_a_launch_that_is_not_prepared(self):
        op = hstujit.Op({"op": "silu", "width": 8, "dtype": "fp32"}, backend="host")
        x = numpy.ones((1, 8), numpy.float32)
        with self.assertRaisesRegex(errors.NotPreparedError, "; call prepare before launch$"):
            op.launch(x=x, out=numpy.empty_like(x))


class Functions(unittest.TestCase):
    def test_they_are_functions_for_help_and_pickle(self):
        text = pydoc.render_doc(hstujit.addmm, renderer=pydoc.plaintext)
        self.assertIn("\naddmm(mat1: 'Array', mat2: 'Array', alpha: 'float', input: 'Array | None' = None, beta:", text)
        self.assertTrue(inspect.isfunction(hstujit.addmm))
        self.assertIs(pickle.loads(pickle.dumps(hstujit.addmm)), hstujit.addmm)
        self.assertIs(copy.deepcopy(hstujit.addmm), hstujit.addmm)

    def test_arguments_are_described_in_the_order_of_a_call(self):
        for name in _interface.interfaces():
            function = getattr(hstujit, name)
            described = re.findall(r"^    (\w+):", function.__doc__.partition("\nReturns:")[0], re.M)
            self.assertEqual(described, list(inspect.signature(function).parameters), name)

    def test_letters_are_those_of_the_page(self):
        layer, stack = hstujit.stu_layer.__doc__, hstujit.stu_stack.__doc__
        for words in ("(width, P), dtype", "(P), dtype", "(Y, width), dtype", "(L, P)", "(L, Y)"):
            self.assertIn(words, layer)
        for words in ("(layers, width, P)", "(layers, Y, width)", "(L, layers*P)", "(L, layers*Y)",
                      "(L, layers*heads*hidden_dim)", "(B, rab_heads, max_seq_len, max_seq_len)"):  # fmt: skip
            self.assertIn(words, stack)
        text = (ROOT / "docs" / "ops-layers.md").read_text(encoding="utf-8")
        for row in ("| `uvqk_weight` | `dtype` | (D, P) |", "| `output_weight` | `dtype` | (Y, D) |"):
            self.assertIn(row, text)

    def test_sentences_list_them_in_that_order(self):
        x = numpy.ones((3, 16), numpy.float16)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "it takes mat1, mat2, alpha, input, beta$"):
            hstujit.addmm(x, numpy.ones((16, 8), numpy.float16), 1.0, input=x[0, :8])

    def test_every_form_of_an_argument_is_described(self):
        self.assertIn("input: what is added; (n) or (L, n), dtype; optional.", hstujit.addmm.__doc__)
        self.assertIn("(1) or (L)", hstujit.attention.__doc__.replace("(L) or (1)", "(1) or (L)"))


class Absent(unittest.TestCase):
    def test_names_that_are_not_there(self):
        for name, meant in (
            ("attentoin", "attention"),
            ("hstu_mha", "hstu_attention"),
            ("hstu_concat_l2_embeddings", "concat_2d_jagged"),
        ):
            with self.assertRaisesRegex(AttributeError, f"no attribute '{name}', did you mean '{meant}'"):
                getattr(hstujit, name)
        with self.assertRaisesRegex(AttributeError, "hstu_attention"):
            hstujit.operators.attentoin  # noqa: B018
