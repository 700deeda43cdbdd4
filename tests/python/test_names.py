"""What is named in sentences, signatures and docstrings: names of Python, in the order of a call."""

import copy
import inspect
import pathlib
import pickle
import pydoc
import re
import unittest

import numpy
from torch_support import torch

import hstujit
from hstujit import _interface, errors
from hstujit._library import suggested
from hstujit._words import PYTHON_NAMES, in_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "hstujit" / "hstujit.h"
# They cannot fail.
SILENT = {"abi_version", "version", "last_error", "status_name", "text_free", "callbacks_stop"} | {
    f"{what}_destroy" for what in ("context", "config", "op", "call")
}
# Behind the functions of operators, without a name of their own in Python.
UNNAMED = {"last_error_fields", "suggest"} | {
    f"call_{what}"
    for what in (
        *("create", "describe", "argument_count", "argument_at", "rows_count", "rows_at"),
        *("output_sizes", "op"),
    )
}


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


class NamesOfC(unittest.TestCase):
    def functions(self):
        return set(re.findall(r"^HSTUJIT_API .*?\bhstujit_(\w+)\(", HEADER.read_text(), re.M))

    def test_every_function_has_a_name_in_python(self):
        self.assertEqual(self.functions() - SILENT - UNNAMED, set(PYTHON_NAMES))
        for name in set(PYTHON_NAMES.values()) - {"environment"}:  # which the tool prints
            found = hstujit
            for part in name.split("."):
                found = getattr(found, part)

    def test_no_sentence_of_the_library_has_a_function_of_c(self):
        seen = set()
        for path in sorted((*ROOT.glob("runtime/**/*.cpp"), *ROOT.glob("compiler/**/*.cpp"))):
            for text in re.findall(r'"((?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*)"', path.read_text()):
                seen.update(re.findall(r"hstujit_(\w+)", text))
                for function in re.findall(r"\bhstujit_(\w+)", in_python(text)):
                    self.assertNotIn(function, self.functions() - UNNAMED, text)
        self.assertLessEqual({"prepare", "launch", "op_create"}, seen)

    def test_files_and_names_in_quotes_stay_as_they_are(self):
        for text in ("/tmp/hstujit_launch/x", 'op is "hstujit_launch"', "libhstujit_host.so", "hstujit_launch.txt"):
            self.assertEqual(in_python(text), text)
        self.assertEqual(in_python("call hstujit_prepare before hstujit_launch."), "call Op.prepare before Op.launch.")

    def test_a_launch_that_is_not_prepared(self):
        op = hstujit.Op({"op": "silu", "width": 8, "dtype": "fp32"}, backend="host")
        x = numpy.ones((1, 8), numpy.float32)
        with self.assertRaisesRegex(errors.NotPreparedError, "; call Op.prepare before Op.launch$"):
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
    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_names_of_the_public_packages_and_of_other_modules(self):
        import hstujit.torch

        for module, name, words in (
            (hstujit, "hstu_mha", "did you mean 'hstu_attention'"),
            (hstujit, "hstu_concat_l2_embeddings", "did you mean 'concat_2d_jagged'"),
            (torch.ops.hstujit, "hstu_mha", "'hstu_mha', did you mean 'hstu_attention'"),
            (torch.ops.hstujit, "layernorm", "did you mean 'layer_norm'"),
            (torch.ops.hstujit, "_layernorm", "no attribute '_layernorm'$"),
            (hstujit.torch, "attention", "did you mean 'hstu_mha'.; the operator is torch.ops.hstujit.hstu_attention$"),
            (hstujit.torch, "stu_layer", "did you mean 'STULayer'.; the operator is torch.ops.hstujit.stu_layer$"),
            (hstujit.torch, "silu", "no attribute 'silu'; the operator is torch.ops.hstujit.silu$"),
        ):
            with self.subTest(name), self.assertRaisesRegex(AttributeError, words):
                getattr(module, name)

    def test_names_that_are_not_there(self):
        with self.assertRaisesRegex(AttributeError, "no attribute 'attentoin', did you mean 'attention'"):
            hstujit.attentoin  # noqa: B018
        for name, meant in (
            ("doctor", r"Context\(\).doctor"),
            ("ls", r"Cache\(\).list"),
            ("export", r"Cache\(\).export"),
        ):
            with self.assertRaisesRegex(AttributeError, f"no attribute '{name}', did you mean '{meant}'"):
                getattr(hstujit, name)
        for name, meant in (("ls", "list"), ("export_", "export"), ("verfiy", "verify")):
            with self.assertRaisesRegex(AttributeError, f"no attribute '{name}', did you mean '{meant}'"):
                getattr(hstujit.Cache(), name)
        with self.assertRaisesRegex(AttributeError, "hstu_attention"):
            hstujit.operators.attentoin  # noqa: B018
