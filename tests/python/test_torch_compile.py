"""torch.compile without graph breaks, torch.export and AOTInductor with lengths that are symbols."""

import tempfile
import unittest

from torch_support import packaged, torch

if torch:
    import torch_cases

    from hstujit.torch import STULayer, STULayerConfig, STUStack, functional, generative_recommenders

    ops = torch.ops.hstujit

    class Layer(torch.nn.Module):
        """A norm, a projection, attention, and a gated norm of the result."""

        def __init__(self):
            super().__init__()
            self.projection = torch.nn.Linear(32, 2 * 56)
            self.weight, self.bias = torch.nn.Parameter(torch.ones(16)), torch.nn.Parameter(torch.zeros(16))

        def forward(self, x, offsets, max_seq_len: int):
            mixed = self.projection(ops.layer_norm(x)).view(-1, 2, 56)
            q, k, v, u = mixed.split([16, 16, 8, 16], -1)
            out = ops.hstu_attention(q, k, v, offsets, max_seq_len, 0.25).flatten(1)
            return ops.hstu_norm_mul_dropout(out, u.reshape(-1, 32)[:, :16].contiguous(), self.weight, self.bias)


def batch(*lengths):
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return torch_cases.tensor(sum(lengths), 32), offsets


@unittest.skipUnless(torch, "PyTorch is not installed")
class Compile(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.layer = Layer()

    def test_products_of_fp32_are_as_pytorch_has_them(self):
        """The drop-in functions ask for it in each call, and a graph is traced anew where the setting is another."""
        found = []

        def backend(graph, inputs):
            found.extend(node.kwargs["precision"] for node in graph.graph.nodes if "precision" in node.kwargs)
            return graph.forward

        x, offsets = batch(3, 0, 5)
        q = x.view(-1, 2, 16)
        compiled = torch.compile(generative_recommenders.hstu_mha, fullgraph=True, backend=backend)
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_tf32
        try:
            for allowed in (True, False):
                matmul.allow_tf32 = allowed
                compiled(8, 0.25, q, q, q, offsets, True, 0.0, False)
        finally:
            matmul.allow_tf32 = before
        self.assertEqual(found, ["tf32", "ieee"])

    def test_one_graph_for_all_lengths(self):
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward

        compiled = torch.compile(self.layer, fullgraph=True, dynamic=True, backend=backend)
        for lengths in ((3, 0, 5), (9, 2, 4, 4), (2, 2, 2)):
            x, offsets = batch(*lengths)
            torch.testing.assert_close(compiled(x, offsets, 16), self.layer(x, offsets, 16))
        self.assertEqual(len(graphs), 1)

    def test_sizes_of_weights_may_be_symbols_while_pytorch_traces(self):
        compiled = torch.compile(ops.layer_norm, fullgraph=True, dynamic=True, backend="aot_eager")
        for rows, columns in ((3, 16), (5, 16), (5, 24)):
            arguments = torch_cases.tensor(rows, columns), torch.ones(columns), torch.zeros(columns)
            torch.testing.assert_close(compiled(*arguments), ops.layer_norm(*arguments))

    def test_inductor_forward_and_backward(self):
        compiled = torch.compile(self.layer, fullgraph=True, dynamic=True)
        x, offsets = batch(3, 0, 5)
        expected = torch.autograd.grad(self.layer(x, offsets, 16).square().sum(), self.layer.parameters())
        found = torch.autograd.grad(compiled(x, offsets, 16).square().sum(), self.layer.parameters())
        for one, other in zip(found, expected):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            x, offsets = batch(4, 7)
            torch.testing.assert_close(compiled(x, offsets, 16), self.layer(x, offsets, 16))

    def test_dropout_is_drawn_anew_and_follows_from_the_seed(self):
        config = STULayerConfig(32, 2, 8, 16, output_dropout_ratio=0.5)
        stack = STUStack([STULayer(config), STULayer(config)])
        x, offsets = batch(3, 0, 5)
        x, weights = x.bfloat16(), (torch.ones(32), torch.zeros(32), torch.eye(96, 32).bfloat16())

        def functions(x):
            normed = functional.hstu_norm_mul_dropout(x, x, *weights[:2], 1e-5, 0.5, True)
            return generative_recommenders.hstu_compute_output(
                normed, x, x, *weights[:2], 1e-5, weights[2], 2, 16, 0.5, True, True, True, "none", False, True
            )

        for call in (lambda x: stack(x, offsets.diff(), offsets, 8), functions):
            for backend in ("aot_eager", "inductor"):
                torch._dynamo.reset()
                compiled = torch.compile(call, fullgraph=True, backend=backend)
                outs = []
                for seed in (7, None, 7):
                    if seed is not None:
                        torch.manual_seed(seed)
                    outs.append(compiled(x.clone().requires_grad_()))
                    outs[-1].float().sum().backward()
                self.assertFalse(torch.equal(outs[0], outs[1]))
                self.assertTrue(torch.equal(outs[0], outs[2]))
                torch.manual_seed(7)
                torch.testing.assert_close(outs[0], call(x))

    def test_no_operator_mutates_so_that_cuda_graphs_are_kept(self):
        for name in dir(ops):
            overload = getattr(getattr(ops, name), "default", None)
            if overload is not None:
                self.assertFalse(overload._schema.is_mutable, name)
                self.assertIn(torch.Tag.pt2_compliant_tag, overload.tags)

    def test_rows_that_only_offsets_tell_are_symbols(self):
        mode = torch._subclasses.FakeTensorMode(shape_env=torch.fx.experimental.symbolic_shapes.ShapeEnv())
        with mode:
            dense, offsets = torch.empty(15, 16), torch.empty(4, dtype=torch.int64)
            out = ops.dense_to_jagged(dense, offsets, 5)
            self.assertEqual(out.shape[1], 16)
            self.assertIsInstance(out.shape[0], torch.SymInt)
            self.assertEqual(ops.dense_to_jagged(dense, offsets, 5, out_rows=8).shape, (8, 16))

    def test_rows_that_only_offsets_tell_are_in_a_graph_that_may_have_them(self):
        """As docs/pytorch.md says: by a setting, and with fullgraph=True of PyTorch 2.11; else they break the graph."""
        left, right = torch_cases.offsets(), torch_cases.offsets(0, 2, 5, 6)

        def apart(rows, dense):
            both = ops.split_2d_jagged(rows * 2, offsets_left=left, offsets_right=right)
            return *both, ops.dense_to_jagged(dense, left, 5)

        arguments = torch_cases.tensor(14, 16).requires_grad_(), torch_cases.tensor(15, 16)
        version = tuple(map(int, torch.__version__.split(".")[:2]))
        for fullgraph, captured in ((True, True), (True, False), (False, False)):
            torch._dynamo.reset()
            graphs = []

            def backend(graph, inputs, graphs=graphs):
                graphs.append([str(node.target) for node in graph.graph.nodes])
                return graph.forward

            with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=captured):
                if fullgraph and not captured and version < (2, 11):
                    continue
                outs = torch.compile(apart, fullgraph=fullgraph, backend=backend)(*arguments)
            for out, expected in zip(outs, apart(*arguments)):
                self.assertTrue(torch.equal(out, expected))
            whole = [name for graph in graphs for name in graph if name.startswith("hstujit.")]
            self.assertEqual(whole, ["hstujit.split_2d_jagged", "hstujit.dense_to_jagged"] if fullgraph else [])

    def export(self):
        x, offsets = batch(3, 0, 5)
        sizes = {0: torch.export.Dim("rows", min=2, max=2**20)}, {0: torch.export.Dim("offsets", min=3, max=2**20)}
        with torch.no_grad():
            return torch.export.export(self.layer, (x, offsets, 16), dynamic_shapes=(*sizes, None))

    def assert_agrees(self, module):
        for lengths in ((3, 0, 5), (6, 1, 9, 2)):
            x, offsets = batch(*lengths)
            with torch.no_grad():
                torch.testing.assert_close(module(x, offsets, 16), self.layer(x, offsets, 16))

    def test_export(self):
        program = self.export()
        self.assert_agrees(program.module())
        with tempfile.TemporaryDirectory() as folder:
            torch.export.save(program, folder + "/layer.pt2")
            self.assert_agrees(torch.export.load(folder + "/layer.pt2").module())

    def test_aot_inductor(self):
        if torch.__version__ < "2.7":
            self.skipTest("AOTInductor of PyTorch 2.6 gives an operator without its tensors to the dispatcher")
        with tempfile.TemporaryDirectory() as folder:
            self.assert_agrees(torch._inductor.aoti_load_package(packaged(self.export(), folder + "/layer.pt2")))
