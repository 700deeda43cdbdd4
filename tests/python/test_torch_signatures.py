"""Parameters of the functions with public names, beside those of the tested versions of the packages."""

import importlib
import inspect
import itertools
import json
import pathlib
import unittest

from torch_support import torch

if torch:
    import torch_cases

    import hstujit.torch
    from hstujit.torch import _public, functional, generative_recommenders, tzrec

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "compatibility"
RECORDED = json.loads((FOLDER / "signatures.json").read_text(encoding="utf-8"))
KERNEL = "kernel=None"  # names a kernel of theirs, and has no effect here


def functions(package):
    return {
        name: [KERNEL if argument.startswith("kernel=") else argument for argument in arguments.split(", ")]
        for module in RECORDED[package]["functions"].values()
        for name, arguments in module.items()
    }


def signature(function, of_keywords=False):
    """As signatures.json has it: of positional arguments, or of keywords."""
    parameters = inspect.signature(function).parameters.values()
    return [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in parameters
        if (p.kind is p.KEYWORD_ONLY) == of_keywords
    ]


@unittest.skipUnless(torch, "PyTorch is not installed")
class Signatures(unittest.TestCase):
    def test_they_are_of_the_versions_that_are_tested(self):
        text = (FOLDER / "packages.py").read_text(encoding="utf-8")
        for package in RECORDED.values():
            self.assertIn(f'"{package["commit"]}"', text)

    def test_a_namespace_has_every_function_with_the_arguments_of_the_package(self):
        for package in RECORDED:
            namespace = importlib.import_module(f"hstujit.torch.{package}")
            self.assertEqual(sorted(functions(package)), namespace.__all__)
            for name, arguments in functions(package).items():
                with self.subTest(package, function=name):
                    function = getattr(namespace, name)
                    self.assertEqual(signature(function), arguments)
                    for keyword in signature(function, of_keywords=True):  # what is ours
                        self.assertIn("=", keyword)
                    self.assertTrue(function.__doc__)

    def test_patch_puts_the_same_functions_in_place(self):
        for package, modules in _public.PACKAGES.items():
            modules = {module: found for module, found in modules.items() if module != "ops.hstu_attention_utils"}
            namespace = importlib.import_module(f"hstujit.torch.{package}")
            self.assertEqual(
                {module: sorted(found) for module, found in RECORDED[package]["functions"].items()},
                {module: sorted(found) for module, found in modules.items()},
            )
            for name, substitute in itertools.chain(*(found.items() for found in modules.values())):
                self.assertIs(substitute.function, getattr(namespace, name))

    def test_a_function_for_both_takes_by_position_what_stands_in_one_place_in_both(self):
        packages = [functions(package) for package in RECORDED]
        for name in sorted(set(itertools.chain(*packages)) & set(hstujit.torch.__all__)):
            shared = []
            for arguments in zip(*(package[name] for package in packages if name in package)):
                if len(set(arguments)) > 1:
                    break
                shared.append(arguments[0])
            self.assertEqual(signature(getattr(hstujit.torch, name)), shared, name)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Calls(unittest.TestCase):
    def setUp(self):
        q, k, v, offsets, length, alpha = next(torch_cases.cases())[2]
        self.attention = length, alpha, q, k, v, offsets, True, 0.0, False, torch.tensor([1, 0, 2])

    def test_arguments_by_position_mean_what_they_mean_there(self):
        scale = torch.tensor([0.5])
        scaled = functional.hstu_mha(*self.attention, attn_scale=scale, max_attn_len=2, contextual_seq_len=1)
        ours = generative_recommenders.hstu_mha(*self.attention, scale, 2, 1)
        self.assertTrue(torch.equal(ours, scaled))
        plain = functional.hstu_mha(*self.attention, max_attn_len=2, contextual_seq_len=1, scaling_seqlen=9)
        ours = tzrec.hstu_mha(*self.attention, 2, 1, 0, False, None, False, None, 9)
        self.assertTrue(torch.equal(ours, plain))
        self.assertFalse(torch.equal(ours, scaled))

    def test_what_another_order_would_have_changed_is_refused(self):
        with self.assertRaisesRegex(
            TypeError, r"^hstu_mha\(\) takes from 6 to 10 positional arguments but 13 were given$"
        ):
            functional.hstu_mha(*self.attention, None, 2, 1)

    def test_rows_of_two_tensors(self):
        left, right = torch_cases.tensor(6, 4), torch_cases.tensor(3, 4)
        together = functional.concat_2D_jagged(values_left=left, values_right=right, max_len_left=2, max_len_right=1)
        self.assertTrue(torch.equal(generative_recommenders.concat_2D_jagged(3, left, right, 2, 1), together))
        self.assertTrue(torch.equal(tzrec.concat_2D_jagged(left, right, 2, 1), together))

    def test_a_mistake_is_of_the_function_that_was_called(self):
        with self.assertRaisesRegex(
            TypeError, r"^hstu_mha\(\) missing 4 required positional arguments: 'q', 'k', 'v', and 'seq_offsets'$"
        ):
            generative_recommenders.hstu_mha(8, 0.25)
