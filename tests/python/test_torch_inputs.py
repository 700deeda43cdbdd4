"""Tensors that come as they are in models: gradients that are not defined, and rows at any stride and address."""

import itertools
import unittest

from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases
    import torch_function_cases
    from torch.utils.checkpoint import checkpoint

    import hstujit.torch
    from hstujit.torch import STULayer, STULayerConfig, STUStack

    class Stop(torch.autograd.Function):
        """As a reversal of gradients by 0, or a function with gradients of other inputs alone."""

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return None


def leaves_of(values):
    return [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad]


def gradients(outputs, used, leaves, unused):
    """Gradients of leaves by weighted sums of the used outputs; ``unused`` is what becomes of the others."""
    for leaf in leaves:
        leaf.grad = None
    weights = (torch_cases.tensor(*output.shape, seed=30 + index).to(output.dtype)
               for index, output in enumerate(outputs))  # fmt: skip
    parts = [output * weight if index in used else unused(output)
             for index, (output, weight) in enumerate(zip(outputs, weights))]  # fmt: skip
    sum(part.float().sum() for part in parts).backward()
    return [leaf.grad for leaf in leaves]


@unittest.skipUnless(torch, "PyTorch is not installed")
class Undefined(unittest.TestCase):
    def setUp(self):
        config = STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, output_dropout_ratio=0)
        self.layer = STULayer(config)
        self.stack = STUStack([self.layer, STULayer(config)])
        self.x, self.offsets = torch_cases.tensor(8, 32).requires_grad_(), torch_cases.offsets()

    def test_every_operator_and_every_subset_of_its_outputs(self):
        seen = 0
        for name, op, arguments, keywords in torch_cases.cases():
            arguments, keywords = torch_cases.with_gradients(op, arguments, keywords)
            leaves = leaves_of((*arguments, *keywords.values()))
            if not leaves:
                continue

            def outputs_of(op=op, arguments=arguments, keywords=keywords):
                result = getattr(torch.ops.hstujit, op)(*arguments, **keywords)
                return [output for output in torch_function_cases.tensors_of(result) if output.requires_grad]

            count = len(outputs_of())
            for size in range(count):
                for used in itertools.combinations(range(count), size):
                    with self.subTest(name, used=used):
                        found = gradients(outputs_of(), used, leaves, Stop.apply)
                        if not used:
                            self.assertEqual(found, [None] * len(leaves))
                            continue
                        expected = gradients(outputs_of(), used, leaves, lambda output: 0 * output)
                        for one, other in zip(found, expected):
                            torch.testing.assert_close(one, other, rtol=0, atol=0)
                        seen += 1
        self.assertGreater(seen, 3)

    def test_nothing_is_launched_where_no_gradient_is_defined(self):
        out = torch.ops.hstujit.layer_norm(self.x)
        with torch.profiler.profile() as profile:
            Stop.apply(out).sum().backward()
        self.assertFalse([event for event in profile.events() if "layer_norm_backward" in event.name])
        self.assertIsNone(self.x.grad)

    def test_layers_stacks_and_checkpoints(self):
        for module in (self.layer, self.stack):

            def call(x, module=module):
                return module(x, self.offsets.diff(), self.offsets, 8)

            for called in (call, lambda x, call=call: checkpoint(call, x, use_reentrant=False)):
                Stop.apply(called(self.x)).sum().backward()
                self.assertIsNone(self.x.grad)
                self.assertTrue(all(parameter.grad is None for parameter in module.parameters()))
            Stop.apply(checkpoint(call, self.x, use_reentrant=True)).sum().backward()
            self.assertFalse(self.x.grad.any())  # such a checkpoint makes zeros itself
            self.x.grad = None
            module.zero_grad()

    def test_compiled(self):
        torch._dynamo.reset()

        @torch.compile(fullgraph=True, backend="aot_eager")
        def call(x):
            return self.stack(x, self.offsets.diff(), self.offsets, 8)

        Stop.apply(call(self.x)).sum().backward()
        self.assertTrue(self.x.grad is None or not self.x.grad.any())


def column(tensor):
    """A vector as a column of a matrix, all else with its last two axes exchanged in memory."""
    if tensor.dim() == 1:
        return torch.stack([tensor, tensor, tensor], dim=1)[:, 1]
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def behind(tensor):
    """Behind one element of a buffer, as parameters of FSDP, ZeRO and apex."""
    return torch.cat([tensor.new_zeros(1), tensor.flatten()])[1:].view(tensor.shape)


def inside(tensor):
    """Columns of a wider matrix, that begin and end at its second and its last but one."""
    return torch.nn.functional.pad(tensor, (1, 1))[..., 1:-1]


LAYOUTS = (column, behind, inside)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layouts(unittest.TestCase):
    def agree(self, call, tensors, changed):
        """Results and gradients of a call with one tensor of another layout."""
        for name, layout in itertools.product(changed, LAYOUTS):
            with self.subTest(name, layout=layout.__name__):
                results = []
                for make in (lambda tensor: tensor, layout):
                    leaves = {n: t.detach().clone().requires_grad_(t.is_floating_point()) for n, t in tensors.items()}
                    out = torch_function_cases.tensors_of(call(**{**leaves, name: make(leaves[name])}))
                    if any(output.requires_grad for output in out):
                        sum(output.square().sum() for output in out if output.requires_grad).backward()
                    results.append((out, {n: leaf.grad for n, leaf in leaves.items()}))
                torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)

    def test_every_tensor_of_every_function(self):
        for module, name, function, arguments in torch_function_cases.calls():
            tensors = {n: value for n, value in arguments.items() if isinstance(value, torch.Tensor)}
            others = {n: value for n, value in arguments.items() if n not in tensors}
            if name == "delta_hstu_mha":
                function = torch.no_grad()(function)

            def call(function=function, others=others, **given):
                return function(**given, **others)

            with self.subTest(f"{module.__name__}.{name}"):
                self.agree(call, tensors, tensors)

    def test_expanded_weights(self):
        x, one = torch_cases.tensor(8, 16), torch.full((1,), 1.5, requires_grad=True)
        out = hstujit.torch.layer_norm(x, one.expand(16), one.expand(16))
        expected = torch.nn.functional.layer_norm(x, (16,), one.expand(16), one.expand(16))
        torch.testing.assert_close(out, expected)
        torch.testing.assert_close(torch.autograd.grad(out.sum(), one), torch.autograd.grad(expected.sum(), one))

    def test_layers(self):
        config = STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8, output_dropout_ratio=0)
        layer, offsets = STULayer(config), torch_cases.offsets()
        parameters = {name: parameter.detach() for name, parameter in layer.named_parameters()}
        rows = {"x": torch_cases.tensor(8, 32), "x_lengths": offsets.diff(), "x_offsets": offsets}
        rows["num_targets"] = torch.tensor([1, 0, 2])

        def call(x, x_lengths, x_offsets, num_targets, **weights):
            arguments = x, x_lengths, x_offsets, 8, num_targets
            return torch.func.functional_call(layer, weights, arguments)

        self.agree(call, {**rows, **parameters}, {**rows, **parameters})

    def test_new_rows_over_a_cache(self):
        layer, offsets = STULayer(STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8)), None
        offsets = torch_cases.offsets(0, 2, 5)
        layer.eval()
        with torch.no_grad():
            x, new, kept = torch_cases.tensor(5, 32), torch_cases.tensor(2, 32, seed=1), torch.tensor([1, 3])
            expected = None
            for layout in (lambda tensor: tensor, *LAYOUTS):
                layer(layout(x), offsets.diff(), layout(offsets), 8, None, 7, layout(kept))
                out = layer.cached_forward(layout(new), layout(torch.tensor([1, 1])))
                expected = out if expected is None else expected
                torch.testing.assert_close(out, expected)

    def test_gradients_that_begin_anywhere(self):
        x, weight = torch_cases.tensor(8, 16).requires_grad_(), torch_cases.tensor(16, 24, seed=1)
        expected = 2 * torch.autograd.grad(torch.ops.hstujit.addmm(x, weight, 1.0, precision="ieee").sum(), x)[0]
        for layout in LAYOUTS:
            out = torch.ops.hstujit.addmm(x, weight, 1.0, precision="ieee")
            (found,) = torch.autograd.grad(out, x, layout(torch.full_like(out, 2)))
            torch.testing.assert_close(found, expected)

    def test_nothing_is_copied_that_is_read_in_place(self):
        """Rows at any element of an operator with kernels for them stay beside weights that are copied."""
        x, weight = behind(torch_cases.tensor(8, 16)), column(torch_cases.tensor(16))
        with torch.profiler.profile(record_shapes=True) as profile:
            hstujit.torch.layer_norm(x, weight, weight)
        shapes = [event.input_shapes[0] for event in profile.events() if event.name == "aten::copy_"]
        self.assertEqual(shapes, [[16], [16]])

    def test_under_transforms(self):
        """Also of tensors that are copied, and after a call whose tensors were."""
        norm = torch.ones(16), torch.zeros(16)

        def rows(x):
            return hstujit.torch.functional.layer_norm(x, *norm)

        rows(torch_cases.tensor(16, 5).t())
        many = torch_cases.tensor(4, 5, 16)
        for given in (many, torch_cases.tensor(4, 16, 5).transpose(1, 2)):
            expected = torch.stack([rows(x) for x in given])
            torch.testing.assert_close(torch.func.vmap(rows)(given), expected)
        x, gradients = many[0].requires_grad_(), torch_cases.tensor(3, 5, 16)
        (batched,) = torch.autograd.grad(rows(x), x, gradients, is_grads_batched=True)
        each = [torch.autograd.grad(rows(x), x, gradient)[0] for gradient in gradients]
        torch.testing.assert_close(batched, torch.stack(each))
        with self.assertRaisesRegex(errors.UnsupportedError, "no derivative under a transform"):
            torch.func.grad(lambda x: rows(x).sum())(many[0].detach())

    def test_while_pytorch_traces(self):
        weight = torch_cases.tensor(16, 24, seed=1)

        def model(buffer, weight):
            x = buffer[1:].view(8, 16)  # behind one element
            return hstujit.torch.addmm(weight[0], x, weight), hstujit.torch.layer_norm(x, weight[:, 0], weight[:, 1])

        buffer, given = torch_cases.tensor(129).requires_grad_(), weight.requires_grad_()
        expected = model(buffer, given)
        wanted = torch.autograd.grad(sum(out.square().sum() for out in expected), (buffer, given))
        for backend in ("eager", "aot_eager", "inductor"):
            torch._dynamo.reset()
            found = torch.compile(model, fullgraph=True, backend=backend)(buffer, given)
            torch.testing.assert_close(found, expected)
            got = torch.autograd.grad(sum(out.square().sum() for out in found), (buffer, given))
            torch.testing.assert_close(got, wanted)

        class Model(torch.nn.Module):
            def forward(self, buffer, weight):
                return model(buffer, weight)

        for strict in (False, True):
            program = torch.export.export(Model(), (buffer, given), strict=strict).module()
            torch.testing.assert_close(program(buffer, given), expected)
        graph = torch.fx.experimental.proxy_tensor.make_fx(model, tracing_mode="fake")(buffer.detach(), given.detach())
        torch.testing.assert_close(graph(buffer.detach(), given.detach()), expected)

    def test_parameters_of_a_compiled_layer_in_one_buffer(self):
        layer = STULayer(STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8)).eval()
        x, offsets = torch_cases.tensor(8, 32), torch_cases.offsets()
        expected = layer(x, offsets.diff(), offsets, 8)
        for parameter in layer.parameters():
            parameter.data = behind(parameter.data)
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x, offsets.diff(), offsets, 8), expected)
