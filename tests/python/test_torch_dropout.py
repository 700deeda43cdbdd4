"""Dropout whose seed PyTorch draws: backward drops what forward dropped, in whatever way PyTorch computes it."""

import tempfile
import unittest

from torch_support import packaged, torch

if torch:
    import torch._functorch.config as functorch_config
    import torch._inductor.config as inductor_config
    import torch_cases
    from torch.utils.checkpoint import checkpoint

    import hstujit.torch
    from hstujit.torch import STULayer, STULayerConfig, functional

    ops = torch.ops.hstujit

ROWS = 7
NUMBERS = {"dropout_ratio": 0.5, "seed": 2**62 + 5, "offset": 3}  # the seed needs more than 53 bits


@unittest.skipUnless(torch, "PyTorch is not installed")
class SeedTensor(unittest.TestCase):
    """A tensor in place of a number."""

    def test_every_operator_drops_what_the_number_drops(self):
        seen = set()
        for case, name, arguments, keywords in torch_cases.cases():
            operator = getattr(ops, name)
            if all(argument.name != "seed_tensor" for argument in operator.default._schema.arguments):
                continue
            if name == "hstu_norm_mul_dropout":  # some of these have dropout by themselves
                arguments = arguments[:5]
                keywords = {key: value for key, value in keywords.items() if key not in self.numbers_in_tensor()}
            seen.add(name)
            with self.subTest(case):
                of_number, of_tensor = (
                    self.outputs_and_gradients(operator, arguments, {**keywords, **numbers})
                    for numbers in (NUMBERS, self.numbers_in_tensor())
                )
                self.assertTrue(all(map(torch.equal, of_number, of_tensor)))
                others = self.outputs_and_gradients(operator, arguments, {**keywords, **self.numbers_in_tensor(6)})
                self.assertFalse(torch.equal(of_tensor[0], others[0]) and torch.equal(of_tensor[1], others[1]))
        self.assertEqual(
            seen, {"hstu_attention", "hstu_norm_mul_dropout", "hstu_compute_output", "stu_layer", "stu_stack"}
        )

    @staticmethod
    def numbers_in_tensor(added=5):
        return {"dropout_ratio": 0.5, "seed_tensor": torch.tensor([2**62 + added]), "offset": 3}

    @staticmethod
    def outputs_and_gradients(operator, arguments, keywords):
        given, named = torch_cases.with_gradients(operator.__name__, arguments, keywords)
        outs = operator(*given, **named)
        outs = [outs] if isinstance(outs, torch.Tensor) else list(outs)
        sum(out.float().sum() for out in outs if out.requires_grad).backward()
        return [*outs, *(value.grad for value in given if isinstance(value, torch.Tensor) and value.grad is not None)]

    def test_wrong_ones_are_named(self):
        x, weight = torch_cases.tensor(4, 16), torch.ones(16)

        def call(**named):
            return ops.hstu_norm_mul_dropout(x, x, weight, weight, dropout_ratio=0.5, offset=0, **named)

        for seed, sentence in (
            (torch.tensor([1, 2]), r"seed_tensor.shape\[0\] is 2; it must be 1"),
            (torch.tensor(1), r"seed_tensor has rank 0, shape \(\); it must be \(1\)"),
            (torch.tensor([1.0]), "seed_tensor has dtype"),
        ):
            with self.assertRaisesRegex(Exception, sentence):
                call(seed_tensor=seed)
        with self.assertRaisesRegex(Exception, "seed is not used"):
            call(seed_tensor=torch.tensor([1]), seed=1)

    def test_a_function_takes_either(self):
        x, norm = torch_cases.tensor(64, 16), (torch.ones(16), torch.zeros(16), 1e-5)
        outs = [functional.hstu_norm_mul_dropout(x, x, *norm, 0.5, True, seed=seed) for seed in (1, torch.tensor([1]))]
        self.assertTrue(torch.equal(*outs))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Attention(unittest.TestCase):
    """Weights that are dropped, found out with values of one column each."""

    def setUp(self):
        torch.manual_seed(0)
        self.offsets = torch.tensor([0, 3, 67])
        self.q, self.k = torch.randn(67, 2, 8), torch.randn(67, 2, 8)
        self.columns = torch.zeros(67, 2, 64)
        for row in range(67):
            self.columns[row, :, row if row < 3 else row - 3] = 1

    def weights(self, call, **named):
        return call(64, 0.3, self.q, self.k, self.columns, self.offsets, **named)

    def test_weights_are_dropped_and_the_rest_is_scaled(self):
        for softmax in (0, 1, 2):
            named = {"num_softmax_heads": softmax}
            whole = self.weights(functional.hstu_mha, **named)
            out = self.weights(functional.hstu_mha, dropout_pr=0.5, **named)
            kept = out != 0
            torch.testing.assert_close(out[kept], 2 * whole[kept], rtol=1e-4, atol=1e-6)
            self.assertAlmostEqual((kept.sum() / (whole != 0).sum()).item(), 0.5, delta=0.05)
            self.assertTrue(
                torch.equal(self.weights(functional.hstu_mha, dropout_pr=0.5, training=False, **named), whole)
            )

    def test_backward_drops_the_same(self):
        """The result is linear in v, so its product with dout is that of v and dv."""
        for seed in (None, 5, torch.tensor([5])):
            v = torch.randn(67, 2, 8, requires_grad=True)
            out = functional.hstu_mha(64, 0.3, self.q, self.k, v, self.offsets, dropout_pr=0.3, seed=seed)
            dout = torch.randn_like(out)
            out.backward(dout)
            torch.testing.assert_close((v * v.grad).sum(), (out * dout).sum(), rtol=1e-4, atol=1e-4)

    def test_a_seed_decides_and_is_drawn_where_there_is_none(self):
        def call(seed, **named):
            q = self.q, self.k, self.columns, self.offsets, 64
            return hstujit.torch.attention(*q, dropout_ratio=0.5, seed=seed, **named)

        self.assertTrue(torch.equal(call(7), call(torch.tensor([7]))))
        self.assertFalse(torch.equal(call(7), call(8)))
        self.assertFalse(torch.equal(call(None), call(None)))
        self.assertTrue(torch.equal(call(None, training=False), call(7, training=False)))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Recomputation(unittest.TestCase):
    """With out = x + Y W and Y of dropout, sum(W * dW) of backward's Y is sum((out - x) * dout) of forward's."""

    def setUp(self):
        torch._dynamo.reset()
        self.addCleanup(torch._dynamo.reset)
        torch.manual_seed(0)
        self.layer = STULayer(STULayerConfig(32, 2, 16, 16, output_dropout_ratio=0.5))
        self.offsets = torch.tensor([0, 3, ROWS])
        self.x = torch.randn(ROWS, 32)

    def call(self, x):
        return self.layer(torch.sin(x), self.offsets.diff(), self.offsets, 8)

    def assert_consistent(self, call, steps=3):
        outs = []
        for _ in range(steps):
            self.layer.zero_grad()
            x = self.x.clone().requires_grad_()
            out, dout = call(x), torch.randn(ROWS, 32)
            out.backward(dout)
            weight = self.layer._output_weight
            of_backward = (weight * weight.grad).sum()
            of_forward = ((out - torch.sin(x)) * dout).sum()
            torch.testing.assert_close(of_backward, of_forward, rtol=1e-4, atol=1e-4)
            outs.append(out.detach())
        for index, out in enumerate(outs):
            self.assertFalse(any(torch.equal(out, other) for other in outs[:index]), "two steps have one mask")

    def test_eager_and_checkpoint(self):
        self.assert_consistent(self.call)
        self.assert_consistent(lambda x: checkpoint(self.call, x, use_reentrant=False))
        self.assert_consistent(lambda x: checkpoint(self.call, x, use_reentrant=True))

    def test_memory_budgets(self):
        for backend in ("aot_eager_decomp_partition", "inductor"):
            for budget in (1.0, 0.5, 0.0):
                with self.subTest(backend=backend, budget=budget):
                    torch._dynamo.reset()
                    with functorch_config.patch(activation_memory_budget=budget):
                        self.assert_consistent(torch.compile(self.call, fullgraph=True, backend=backend))

    def test_checkpoint_of_a_graph(self):
        compiled = torch.compile(lambda x: checkpoint(self.call, x, use_reentrant=False), fullgraph=True)
        self.assert_consistent(compiled)

    def test_each_call_of_a_graph_has_a_mask_of_its_own(self):
        norm = torch.ones(32), torch.zeros(32)

        def twice(x):
            return [functional.hstu_norm_mul_dropout(x, x, *norm, 1e-5, 0.5, True) for _ in range(2)]

        self.assertFalse(torch.equal(*torch.compile(twice, fullgraph=True)(self.x)))

    def test_cpp_wrapper(self):
        with inductor_config.patch(cpp_wrapper=True):
            self.assert_consistent(torch.compile(self.call, fullgraph=True))

    def test_aot_inductor_in_train_mode(self):
        class Dropout(torch.nn.Module):
            def forward(self, x):
                return functional.hstu_norm_mul_dropout(x, x, torch.ones(32), torch.zeros(32), 1e-5, 0.5, True)

        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            program = torch.export.export(Dropout(), (self.x,))
            packed = torch._inductor.aoti_load_package(packaged(program, folder + "/dropout.pt2"))
            torch.manual_seed(3)
            outs = [packed(self.x) for _ in range(2)]
            torch.manual_seed(3)
            torch.testing.assert_close(outs[0], Dropout()(self.x))
            self.assertFalse(torch.equal(*outs))


if __name__ == "__main__":
    unittest.main()
