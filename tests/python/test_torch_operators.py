"""torch.ops.hstujit on tensors of the CPU: results, derivatives, and what PyTorch checks of operators."""

import contextlib
import os
import subprocess
import sys
import threading
import unittest
import warnings
from unittest import mock

import numpy
from support import closeness
from support import random as random_array
from torch_support import torch

import hstujit
from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch

    ops = torch.ops.hstujit


def results(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def operator(name):
    return getattr(ops, name).default


@unittest.skipUnless(torch, "PyTorch is not installed")
class Operators(unittest.TestCase):
    def test_every_operator_has_a_case(self):
        self.assertEqual({op for _, op, _, _ in torch_cases.cases()}, set(hstujit._interface.operators()))

    def test_required_arguments_stand_in_launch_order(self):
        for name, where in hstujit._interface.interfaces().items():
            required = [
                a.name for a in operator(name)._schema.arguments if not a.kwarg_only and not a.has_default_value()
            ]
            launch = [argument.name for argument in hstujit._interface.interface(*where).inputs]
            self.assertEqual(required, [argument for argument in launch if argument in required])
            alpha_first = {"add_positional_embeddings": True, "hstu_attention": False}  # as docs/pytorch.md says
            if name in alpha_first:
                self.assertEqual(required.index("alpha") < required.index("seq_offsets"), alpha_first[name])

    def test_results_are_those_of_the_functions_for_arrays(self):
        for name, op, arguments, keywords in torch_cases.cases():
            with self.subTest(name):
                array = {key: v.numpy() if isinstance(v, torch.Tensor) else v for key, v in keywords.items()}
                expected = getattr(hstujit, op)(
                    *(v.numpy() if isinstance(v, torch.Tensor) else v for v in arguments), **array
                )
                expected = expected if isinstance(expected, tuple) else (expected,)
                outs = [out for out in results(operator(op)(*arguments, **keywords)) if out.shape != (0,)]
                self.assertEqual(len(outs), len(expected))  # those that the instance has
                for out, array in zip(outs, expected):
                    numpy.testing.assert_array_equal(out.numpy(), array)

    def test_opcheck(self):
        for name, op, arguments, keywords in torch_cases.cases():
            with self.subTest(name):
                torch.library.opcheck(operator(op), *torch_cases.with_gradients(op, arguments, keywords))

    def test_gradients_agree_with_differences(self):
        """Differences in a random direction of each input: torch.autograd.gradcheck wants more digits than exist."""
        for name, op, arguments, keywords in torch_cases.cases():
            if op not in torch_cases.FORWARD_ONLY:
                with self.subTest(name):
                    self.compare_with_differences(op, *torch_cases.with_gradients(op, arguments, keywords))

    def compare_with_differences(self, op, arguments, keywords):
        outs = results(operator(op)(*arguments, **keywords))
        differentiable = [index for index, out in enumerate(outs) if out.requires_grad]  # others are for backward
        weights = [torch_cases.tensor(*out.shape, seed=20) for out in outs]

        def total(outs):
            return sum((outs[index].double() * weights[index]).sum() for index in differentiable)

        def moved(leaf, change):
            def value_of(value):
                return value + change.to(value.dtype) if value is leaf else value

            named = {key: value_of(value) for key, value in keywords.items()}
            with torch.no_grad():
                return total(results(operator(op)(*map(value_of, arguments), **named))).item()

        leaves = [v for v in (*arguments, *keywords.values()) if isinstance(v, torch.Tensor) and v.requires_grad]
        is_short = any(leaf.dtype == torch.float16 for leaf in leaves)
        step, bound = (0.05, 0.1) if is_short else (1e-2, 3e-3)
        for index, (leaf, gradient) in enumerate(zip(leaves, torch.autograd.grad(total(outs), leaves))):
            direction = torch_cases.tensor(*leaf.shape, seed=30)
            expected = (moved(leaf, step * direction) - moved(leaf, -step * direction)) / (2 * step)
            found = (gradient.double() * direction).sum().item()
            self.assertAlmostEqual(found, expected, delta=bound * max(1, abs(expected)), msg=f"input {index}")

    def test_silu_of_the_first_columns_of_a_product(self):
        mat1, mat2 = torch_cases.tensor(8, 16).half(), torch_cases.tensor(16, 24, seed=1).half().requires_grad_()
        plain, out = ops.addmm(mat1, mat2, 1.0), ops.addmm(mat1, mat2, 1.0, silu_columns=11)
        torch.testing.assert_close(out[:, :11], torch.nn.functional.silu(plain[:, :11]), rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(out[:, 11:], plain[:, 11:])
        with self.assertRaisesRegex(errors.UnsupportedError, "addmm has no derivative with silu_columns=11"):
            out.sum().backward()

    def test_a_stack_is_layers_in_order(self):
        _, _, arguments, keywords = next(case for case in torch_cases.cases() if case[0] == "stack")
        arguments, keywords = torch_cases.with_gradients("stu_stack", arguments, keywords)
        leaves = [value for value in arguments if isinstance(value, torch.Tensor) and value.requires_grad]
        x, stacked = arguments[0], [any(value is leaf for leaf in leaves[1:]) for value in arguments]
        for layer in range(2):
            own = [value[layer] if of_layer else value for value, of_layer in zip(arguments, stacked)]
            x = ops.stu_layer(x, *own[1:], **keywords)[0]
        out = ops.stu_stack(*arguments, **keywords)[0]
        self.assertTrue(torch.equal(out, x))
        weights = torch_cases.tensor(*out.shape, seed=20).half()
        found, wanted = (torch.autograd.grad((result * weights).sum(), leaves) for result in (out, x))
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other, rtol=0, atol=0)

    def test_gradcheck(self):
        q, k, v = (tensor.requires_grad_() for tensor in next(torch_cases.cases())[2][:3])

        def attention(q, k, v):
            return ops.hstu_attention(q, k, v, torch_cases.offsets(), 8, 0.25, precision="ieee")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would rather have float64
            passed = torch.autograd.gradcheck(attention, (q, k, v), eps=1e-2, atol=1e-2, rtol=1e-2, fast_mode=True)
        self.assertTrue(passed)
        matrices = [torch_cases.tensor(*shape).requires_grad_() for shape in ((8, 16), (16, 24), (24,))]

        def product(mat1, mat2, added):
            return ops.addmm(mat1, mat2, 0.5, added, 2.0, precision="ieee")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            passed = torch.autograd.gradcheck(product, matrices, eps=1e-2, atol=1e-2, rtol=1e-2, fast_mode=True)
        self.assertTrue(passed)

    def test_only_gradients_that_are_wanted_are_computed(self):
        name, op, arguments, keywords = list(torch_cases.cases())[1]
        q = arguments[0].clone().requires_grad_()
        out = operator(op)(q, *arguments[1:], **keywords)
        calls = []
        with Recorder(calls):
            out.sum().backward()
        self.assertEqual(len(calls), 1)
        self.assertFalse(calls[0]["drab"] or calls[0]["dattn_scale"])
        self.assertEqual(q.grad.shape, q.shape)

    def test_a_default_beside_what_replaces_it(self):
        q, k, v, offsets = *next(torch_cases.cases())[2][:3], torch_cases.offsets()
        everything = ops.hstu_attention(q, k, v, offsets, 8, 0.25, full_mask=True)
        self.assertTrue(
            torch.equal(everything, ops.hstu_attention(q, k, v, offsets, 8, 0.25, causal=False, max_attn_len=-1))
        )

    def test_derivatives_that_are_not_there_say_so(self):
        x = torch_cases.tensor(8, 16)
        with self.assertRaisesRegex(errors.UnsupportedError, "silu.* has no derivative in forward mode"):
            torch.func.jvp(ops.silu, (x,), (torch.ones_like(x),))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            with self.assertRaisesRegex(errors.UnsupportedError, "silu.* has no derivative in forward mode"):
                ops.silu(dual)
        with self.assertRaisesRegex(errors.UnsupportedError, "silu.* under a transform of torch.func"):
            torch.func.grad(lambda x: ops.silu(x).sum())(x)

    def test_a_matrix_that_needs_no_gradient_gets_none(self):
        mat1, mat2, matrix = (torch_cases.tensor(16, 16).half() for _ in range(3))
        mat1.requires_grad_()
        with torch.profiler.profile() as profile:
            ops.addmm(mat1, mat2, 1.0, matrix, 0.5).sum().backward()
        self.assertFalse([event for event in profile.events() if event.name == "aten::mul"])
        self.assertIsNotNone(mat1.grad)
        matrix.requires_grad_()
        ops.addmm(mat1, mat2, 1.0, matrix, 0.5).sum().backward()
        self.assertTrue(torch.equal(matrix.grad, torch.full_like(matrix, 0.5)))

    def test_what_a_transform_has_left_is_the_tensor_that_it_was_of(self):
        x, seen = torch_cases.tensor(8, 16).requires_grad_(), []
        torch.func.grad(lambda inner: (seen.append(inner), inner.sum())[1])(x)
        (expected,) = torch.autograd.grad(ops.silu(x).sum(), x)
        (found,) = torch.autograd.grad(ops.silu(seen[0]).sum(), x)
        self.assertTrue(torch.equal(found, expected))

    def test_a_bias_beside_the_rows_that_follow_from_it(self):
        gradients = []
        for name in ("layer", "layer_kept"):
            _, _, arguments, keywords = next(case for case in torch_cases.layers() if case[0] == name)
            bias = torch_cases.tensor(96).half().requires_grad_()
            layer = ops.stu_layer(*arguments[:9], bias, *arguments[10:], **keywords)
            self.assertEqual([out.requires_grad for out in layer], [True, False, False, False, False])
            gradients += torch.autograd.grad(layer[0].sum(), bias)
        self.assertGreater(gradients[0].abs().max().item(), 0)
        torch.testing.assert_close(*gradients, rtol=2e-2, atol=2e-2)

    def test_what_has_no_derivative_says_so(self):
        x = torch_cases.tensor(8, 16).requires_grad_()
        kept = ops.split_2d_jagged(x, torch_cases.offsets(), max_len_right=0, left_only=True)
        with self.assertRaisesRegex(errors.UnsupportedError, "left_only"):
            kept[0].sum().backward()
        q, k, v = next(torch_cases.cases())[2][:3]
        full = ops.construct_full_kv(x, x[:3], torch_cases.offsets(), 1, x, x[:3], attn_dim=16, hidden_dim=16)
        with self.assertRaisesRegex(errors.UnsupportedError, "construct_full_kv has no derivative"):
            full[0].sum().backward()
        y = ops.layer_norm(x)
        q = q.detach().requires_grad_()
        z = ops.hstu_attention(q, k, v, torch_cases.offsets(), 8, 0.25)  # whose backward returns a list
        for out, of in ((y, x), (z, q)):
            (gradient,) = torch.autograd.grad(out.square().sum(), of, create_graph=True)
            with self.assertRaisesRegex(errors.UnsupportedError, "second derivatives"):
                gradient.sum().backward()


class Recorder(torch.utils._python_dispatch.TorchDispatchMode if torch else object):
    """Keeps the keywords of backward calls."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.namespace == "hstujit":
            self.calls.append({argument.name: argument.default_value for argument in function._schema.arguments})
            self.calls[-1].update(keywords or {})
        return function(*arguments, **(keywords or {}))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Mistakes(unittest.TestCase):
    def setUp(self):
        self.arguments = dict(zip(("q", "k", "v", "seq_offsets", "max_seq_len", "alpha"), next(torch_cases.cases())[2]))

    def refused(self, kind, words, **changes):
        with self.assertRaisesRegex(kind, words):
            ops.hstu_attention(**{**self.arguments, **changes})

    def test_none_is_no_tensor(self):
        """A schema says of no tensor that it must be one."""
        for name in ("q", "k", "v", "seq_offsets"):
            self.refused(errors.InvalidArgumentError, f"^{name} is None; it must be a tensor$", **{name: None})
        q, k, v, offsets, max_seq_len, alpha = self.arguments.values()
        dout = torch.ones_like(v)
        for name in ("q", "k", "v", "seq_offsets", "dout"):
            given = {"q": q, "k": k, "v": v, "seq_offsets": offsets, "dout": dout, name: None}
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"^{name} is None; it must be a tensor$"):
                ops.hstu_attention_backward(**given, max_seq_len=max_seq_len, alpha=alpha)
        ops.hstu_attention(**self.arguments)  # which is still what it was

    def test_bad_input_is_an_exception_that_names_it(self):
        q, k = self.arguments["q"], self.arguments["k"]
        self.refused(errors.InvalidArgumentError, "k has dtype fp16; it must be fp32", k=k.half())
        self.refused(errors.InvalidArgumentError, "q has dtype fp64; it must be bf16, fp16 or fp32", q=q.double())
        self.refused(errors.InvalidArgumentError, "q has dtype complex64", q=q.to(torch.complex64))
        self.refused(errors.InvalidArgumentError, r"k.shape\[2\] is 16; it must be 12", q=q[:, :, :12])
        self.refused(errors.InvalidArgumentError, "q has rank 2", q=q[:, 0])
        offsets = self.arguments["seq_offsets"]
        words = f"num_targets has dtype fp32; it must be {str(offsets.dtype).removeprefix('torch.')}, as seq_offsets"
        self.refused(errors.InvalidArgumentError, words, num_targets=torch.ones(len(offsets) - 1))
        self.refused(errors.InvalidArgumentError, "seq_offsets has rank 2", seq_offsets=offsets[None])
        self.refused(errors.InvalidArgumentError, r"k.shape\[0\] is 8; it must be L = 7", q=q[:7])
        self.refused(errors.InvalidArgumentError, "seq_offsets", seq_offsets=torch.tensor([0, 9, 3]))
        self.refused(errors.InvalidArgumentError, "max_seq_len", max_seq_len=-1)
        self.refused(errors.InvalidArgumentError, "finite", alpha=float("inf"))
        self.refused(errors.InvalidConfigError, 'score is "exp"', score="exp")
        self.refused(RuntimeError, "q", q=3)
        of_pytorch = "Unknown keyword argument 'cusal' for operator 'hstujit::hstu_attention'. Schema: "
        self.refused(RuntimeError, of_pytorch, cusal=True)  # as docs/python.md says
        del self.arguments["alpha"]
        self.refused(RuntimeError, r"hstu_attention\(\) is missing value for argument 'alpha'. Declaration: ")

    def test_ranks_of_a_call_that_is_like_an_earlier_one(self):
        x, offsets = torch_cases.tensor(8, 16), torch_cases.offsets()
        ops.jagged_to_padded_dense(x, offsets, 4)
        for wrong in (offsets[0], offsets[None]):
            with self.assertRaisesRegex(errors.InvalidArgumentError, "seq_offsets has rank"):
                ops.jagged_to_padded_dense(x, wrong, 4)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "values has rank 1"):
            ops.jagged_to_padded_dense(x[0], offsets, 4)

    def test_sizes_below_0(self):
        x, offsets = torch_cases.tensor(8, 16), torch_cases.offsets()
        with self.assertRaisesRegex(errors.InvalidArgumentError, "max_len is -3; it must be at least 0"):
            ops.jagged_to_padded_dense(x, offsets, -3)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "out_rows is -1"):
            ops.dense_to_jagged(torch_cases.tensor(15, 16), offsets, 5, out_rows=-1)

    def test_tensors_on_different_devices_while_pytorch_traces(self):
        """Each tensor of each operator in turn; and of tensors without data beside others, in plain calls."""
        for where, elsewhere, mode in (("cuda", "cpu", True), ("cpu", "cuda", True), ("cpu", "meta", False)):
            for name, op, arguments, keywords in torch_cases.cases():
                names = [argument.name for argument in operator(op)._schema.arguments]
                given = {**dict(zip(names, arguments)), **keywords}
                tensors = [key for key, value in given.items() if isinstance(value, torch.Tensor)]
                for moved in tensors if len(tensors) > 1 else ():
                    with self.subTest(name, where=where, moved=moved):
                        self.refuse_mixed(op, given, where, elsewhere, moved, mode)

    def refuse_mixed(self, op, given, where, elsewhere, moved, fake):
        mode = torch._subclasses.FakeTensorMode() if fake else contextlib.nullcontext()

        def placed(name, value):
            device = elsewhere if name == moved else where
            if not isinstance(value, torch.Tensor):
                return value
            return torch.empty(value.shape, dtype=value.dtype, device=device) if fake else value.to(device)

        with mode, self.assertRaises(errors.InvalidArgumentError) as raised:
            operator(op)(**{name: placed(name, value) for name, value in given.items()})
        sentence = str(raised.exception)
        self.assertTrue(sentence.startswith("Expected all tensors to be on the same device, but "), sentence)
        self.assertRegex(sentence, rf"\b{moved} is on {elsewhere}")
        self.assertRegex(sentence, rf"\w+ is on {where}")

    def test_memory_that_is_gone(self):
        q = self.arguments["q"].clone()
        q.untyped_storage().resize_(0)
        self.refused(errors.Error, "q", q=q)

    def test_rows_that_nothing_tells(self):
        with self.assertRaisesRegex(errors.InvalidArgumentError, "dposition_embeddings_weight_rows is missing"):
            ops.add_positional_embeddings_backward(torch_cases.tensor(8, 16), 1.0, torch_cases.offsets())


@unittest.skipUnless(torch, "PyTorch is not installed")
class Use(unittest.TestCase):
    def test_views_of_one_matrix_and_addresses_of_any_alignment(self):
        matrix = torch_cases.tensor(8, 2, 40)
        q, k, v = matrix.split([16, 16, 8], -1)
        expected = ops.hstu_attention(q.contiguous(), k.contiguous(), v.contiguous(), torch_cases.offsets(), 8, 0.25)
        self.assertTrue(torch.equal(ops.hstu_attention(q, k, v, torch_cases.offsets(), 8, 0.25), expected))
        shifted = torch.empty(q.numel() + 1)[1:].view(q.shape).copy_(q)
        self.assertTrue(torch.equal(ops.hstu_attention(shifted, k, v, torch_cases.offsets(), 8, 0.25), expected))

    def test_batches_without_sequences_and_without_rows(self):
        empty = torch.empty(0, 2, 16)
        for offsets in (torch.tensor([0]), torch.tensor([0, 0])):
            self.assertEqual(ops.hstu_attention(empty, empty, empty, offsets, 8, 0.25).shape, (0, 2, 16))

    def test_half_precision(self):
        q, k, v = next(torch_cases.cases())[2][:3]
        expected = ops.hstu_attention(q, k, v, torch_cases.offsets(), 8, 0.25)
        for dtype in (torch.bfloat16, torch.float16):
            out = ops.hstu_attention(q.to(dtype), k.to(dtype), v.to(dtype), torch_cases.offsets(), 8, 0.25)
            self.assertEqual(out.dtype, dtype)
            self.assertLess(closeness(out.float(), expected.numpy()), 2e-2)

    def test_autocast_lowers_matrix_products_and_widens_the_rest(self):
        q, k, v = next(torch_cases.cases())[2][:3]
        q.requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            out = ops.hstu_attention(q, k, v.bfloat16(), torch_cases.offsets(), 8, 0.25)
            product = ops.addmm(k.view(8, 32), torch.ones(32, 8), 1.0)
            norm = ops.layer_norm(k.view(8, 32))
            mixed = ops.jagged_dense_broadcast_add(k.view(8, 32).bfloat16(), torch.ones(3, 32), torch_cases.offsets())
        self.assertEqual((out.dtype, product.dtype), (torch.bfloat16, torch.bfloat16))
        self.assertEqual((norm.dtype, mixed.dtype), (torch.float32, torch.float32))
        out.float().sum().backward()
        self.assertEqual(q.grad.dtype, torch.float32)

    def test_operators_use_the_default_context_of_the_moment(self):
        before = hstujit.default_context()
        self.addCleanup(hstujit.set_default_context, before)
        ops.complete_cumsum(torch.tensor([1, 2]))
        with mock.patch.dict(os.environ, HSTUJIT_HOST_LIBRARY="/nowhere/libhstujit_host.so"):
            context = hstujit.Context()
        hstujit.set_default_context(context)
        with self.assertRaisesRegex(errors.NoHostBackendError, "/nowhere/libhstujit_host.so"):
            ops.complete_cumsum(torch.tensor([1, 2]))
        hstujit.set_default_context(before)
        self.assertEqual(ops.complete_cumsum(torch.tensor([1, 2])).tolist(), [0, 1, 3])

    def test_without_the_host_backend_the_error_is_one_of_its_own(self):
        code = "import torch, hstujit.torch; torch.ops.hstujit.complete_cumsum(torch.tensor([1]))"
        variables = {**os.environ, "HSTUJIT_HOST_LIBRARY": "/nowhere/libhstujit_host.so"}
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("hstujit.errors.NoHostBackendError: the host backend", done.stderr)

    def test_threads_agree(self):
        q, k, v = (torch.from_numpy(random_array(8, 2, 16, seed=seed)) for seed in range(3))
        leaf = q.requires_grad_()
        expected = torch.autograd.grad(ops.hstu_attention(leaf, k, v, torch_cases.offsets(), 8, 0.25).sum(), leaf)[0]
        found = []

        def work():
            for _ in range(20):
                out = ops.hstu_attention(leaf, k, v, torch_cases.offsets(), 8, 0.25)
                found.append(torch.autograd.grad(out.sum(), leaf)[0])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 80)
        self.assertTrue(all(torch.equal(gradient, expected) for gradient in found))
