"""Graphs of torch.fx, and TorchScript of them, as TorchEasyRec exports its models."""

import importlib
import inspect
import io
import unittest
import warnings

from torch_support import import_scratch_packages, torch

from hstujit import errors

if torch:
    import test_torch_patch
    import torch_cases
    import torch_function_cases

    import hstujit.torch
    from hstujit.torch import STULayer, STULayerConfig, STUStack, _nodes


def scripted(graph):
    """The graph as TorchScript that was saved and loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(graph)
        file = io.BytesIO()
        torch.jit.save(script, file)
        file.seek(0)
        return torch.jit.load(file)


def module_of(function, arguments):
    """A module that calls a function: tensors are its inputs, and all else is there when it is traced."""
    names = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    others = {name: value for name, value in arguments.items() if name not in names}
    given = ", ".join(f"{name}={name}" for name in names)
    scope = {"torch": torch, "function": function, "others": others}
    body = f"class Model(torch.nn.Module):\n    def forward(self, {', '.join(names)}):\n        "
    exec(f"{body}return function({given}, **others)", scope)
    return scope["Model"](), [arguments[name] for name in names]


@unittest.skipUnless(torch, "PyTorch is not installed")
class Graphs(unittest.TestCase):
    def same(self, found, expected):
        found, expected = map(torch_function_cases.tensors_of, (found, expected))
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertTrue(torch.equal(one, other))

    def test_every_public_function(self):
        for module, name, function, arguments in torch_function_cases.calls():
            with self.subTest(f"{module.__name__}.{name}"):
                expected = function(**arguments)
                model, inputs = module_of(function, arguments)
                graph = torch.fx.symbolic_trace(model)
                self.same(graph(*inputs), expected)
                self.same(scripted(graph)(*inputs), expected)

    def test_numbers_may_be_inputs_and_defaults_are_those_of_the_function(self):
        class Model(torch.nn.Module):
            def forward(self, q: torch.Tensor, seq_offsets: torch.Tensor, max_seq_len: int):
                return hstujit.torch.hstu_mha(max_seq_len, 1, q, q, q, seq_offsets)

        q, offsets = torch_cases.tensor(8, 2, 16), torch_cases.offsets()
        script = scripted(torch.fx.symbolic_trace(Model()))
        for length in (8, 16):
            self.same(script(q, offsets, length), hstujit.torch.hstu_mha(length, 1, q, q, q, offsets))
        with self.assertRaisesRegex(RuntimeError, "sequence 2 has 5 rows by seq_offsets"):
            script(q, offsets, 4)

    def test_a_number_or_a_tensor(self):
        def plus(x: "torch.Tensor", by: "int | torch.Tensor | None" = None) -> "torch.Tensor":
            return x if by is None else x + by

        node, x = _nodes.Node(plus), torch_cases.tensor(8, 2)
        for by in (None, 3, torch_cases.tensor(1)):

            def add(x, by=by):
                return node.add({"x": x, "by": by})

            model, inputs = module_of(add, {"x": x, "by": by})
            self.same(scripted(torch.fx.symbolic_trace(model))(*inputs), plus(x, by))

    def test_a_graph_is_trained_and_drops_anew(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = torch.nn.Parameter(torch.ones(16)), torch.nn.Parameter(torch.zeros(16))

            def forward(self, x):
                return hstujit.torch.hstu_norm_mul_dropout(x, x, self.weight, self.bias, 1e-5, 0.5, self.training)

        model, x = Model(), torch_cases.tensor(8, 16)
        graph = torch.fx.symbolic_trace(model)
        for called in (graph, scripted(graph)):
            self.assertFalse(torch.equal(called(x), called(x)))
            torch.manual_seed(5)
            out = called(x)
            torch.manual_seed(5)
            self.same(out, model(x))
            out.sum().backward()
            weight = called.weight.grad
            torch.manual_seed(5)
            model.weight.grad = None
            model(x).sum().backward()
            self.same(weight, model.weight.grad)

    def test_a_graph_is_compiled_and_exported(self):
        model, inputs = module_of(hstujit.torch.layer_norm, torch_function_cases.given()["layer_norm"])
        graph = torch.fx.symbolic_trace(model)
        torch._dynamo.reset()
        self.same(torch.compile(graph, backend="aot_eager", fullgraph=True)(*inputs), model(*inputs))
        self.same(torch.export.export(graph, tuple(inputs)).module()(*inputs), model(*inputs))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layers(unittest.TestCase):
    def setUp(self):
        config = STULayerConfig(embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=8)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.stack = STUStack([STULayer(config), STULayer(config)])
                self.last = torch.nn.Linear(32, 8)

            def forward(self, x, seq_offsets, num_targets):
                return self.last(self.stack(x, seq_offsets.diff(), seq_offsets, 8, num_targets))

        self.model = Model()
        self.given = torch_cases.tensor(8, 32), torch_cases.offsets(), torch.tensor([1, 0, 2])

    def test_a_model_with_layers(self):
        graph = torch.fx.symbolic_trace(self.model.eval())
        for called in (graph, scripted(graph)):
            self.assertTrue(torch.equal(called(*self.given), self.model(*self.given)))
        graph(*self.given).sum().backward()
        name = "stack._stu_layers.0._uvqk_weight"
        found = graph.get_parameter(name).grad
        for parameter in self.model.parameters():
            parameter.grad = None
        self.model(*self.given).sum().backward()
        self.assertTrue(torch.equal(found, self.model.get_parameter(name).grad))

    def test_a_layer_that_is_traced_itself(self):
        layer, (x, offsets, _) = self.model.eval().stack._stu_layers[0], self.given
        without = {"max_kv_caching_len": 0, "kv_caching_lengths": None}
        graph = torch.fx.symbolic_trace(layer, concrete_args={"max_seq_len": 8, "num_targets": None, **without})
        arguments = x, offsets.diff(), offsets, 8, None
        self.assertTrue(torch.equal(graph(*arguments, 0, None), layer(*arguments)))
        with self.assertRaisesRegex(errors.UnsupportedError, "^kv_caching_lengths is given while torch.fx traces"):
            torch.fx.symbolic_trace(layer)

        class Cached(torch.nn.Module):
            def forward(self, x):
                return layer.cached_forward(x)

        with self.assertRaisesRegex(errors.UnsupportedError, "^cached_forward is called while torch.fx traces"):
            torch.fx.symbolic_trace(Cached())

    def test_a_layer_alone_says_what_to_script(self):
        for module in (self.model, self.model.stack, self.model.stack._stu_layers[0]):
            with self.assertRaisesRegex(errors.UnsupportedError, "^torch.jit.script compiles no STULayer: trace"):
                torch.jit.script(module)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Patched(unittest.TestCase):
    def test_a_patched_model(self):
        import_scratch_packages(self, test_torch_patch.write_package, ("generative_recommenders",))
        self.addCleanup(hstujit.torch.unpatch)
        report = hstujit.torch.patch("generative_recommenders")
        known = torch_function_cases.given()
        for full in report.replaced:
            module, _, name = full.rpartition(".")
            function = getattr(importlib.import_module(module), name)
            arguments = {n: known[name][n] for n in known[name] if n in inspect.signature(function).parameters}
            if name == "addmm":
                arguments["kernel"] = None
            with self.subTest(full):
                model, inputs = module_of(function, arguments)
                ours, theirs = report.calls[full].ours, report.calls[full].theirs.total()
                script = scripted(torch.fx.symbolic_trace(model))
                self.assertEqual((report.calls[full].ours - ours, report.calls[full].theirs.total() - theirs), (1, 0))
                found, expected = map(torch_function_cases.tensors_of, (script(*inputs), model(*inputs)))
                for one, other in zip(found, expected, strict=True):
                    self.assertTrue(torch.equal(one, other))

    def test_products_in_pytorch_stay_with_the_package(self):
        import_scratch_packages(self, write_products, ("tzrec",))
        self.addCleanup(hstujit.torch.unpatch)
        report = hstujit.torch.patch("tzrec")
        module = importlib.import_module("tzrec.ops.mm")
        arguments = {name: value[..., :12] if name != "mat1" else value
                     for name, value in torch_function_cases.given()["addmm"].items()}  # fmt: skip
        model, inputs = module_of(module.addmm, {**arguments, "kernel": module.Kernel.PYTORCH})
        self.assertEqual(scripted(torch.fx.symbolic_trace(model))(*inputs).shape, (8, 12))
        self.assertEqual(report.calls["tzrec.ops.mm.addmm"].theirs, {"a product in PyTorch while torch.fx traces": 1})


def write_products(folder):
    operators = folder / "tzrec" / "ops"
    operators.mkdir(parents=True)
    for init in (operators.parent, operators):
        (init / "__init__.py").write_text("")
    body = "def addmm(input, mat1, mat2, kernel=Kernel.TRITON):\n    return torch.addmm(input, mat1, mat2)\n"
    (operators / "mm.py").write_text(f"import torch\n{test_torch_patch.KERNELS}{body}")
