"""torch.ops.hstujit on a GPU: results, streams, threads, CUDA graphs, and the host time of a call."""

import pathlib
import subprocess
import sys
import threading
import unittest

from torch_support import torch

from hstujit import errors

if torch:
    import torch._functorch.config
    import torch_cases
    from torch.utils.checkpoint import checkpoint

    import hstujit
    import hstujit.torch  # noqa: F811
    from hstujit.torch import STULayer, STULayerConfig

    ops = torch.ops.hstujit

HAS_GPU = torch is not None and torch.cuda.is_available()
ROUNDING = 2e-3  # matrix products of fp32 data are tf32


def on_gpu(value, dtype=None):
    if not isinstance(value, torch.Tensor):
        return value
    return value.cuda().to(dtype) if dtype and value.is_floating_point() else value.cuda()


def results(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def batch(dtype=None, rows=None):
    dtype, rows = dtype or torch.bfloat16, rows or [300, 0, 700, 1000]
    offsets = torch.tensor([0, *rows]).cumsum(0).cuda()
    q, k, v = (torch_cases.tensor(sum(rows), 4, 64, seed=seed).cuda().to(dtype) for seed in range(3))
    return q, k, v, offsets, 1024, 1 / 64


@unittest.skipUnless(HAS_GPU, "there is no GPU that PyTorch can use")
class Results(unittest.TestCase):
    def assert_close(self, found, expected, bound=ROUNDING):
        found, expected = found.double().cpu(), expected.double().cpu()
        self.assertLessEqual((found - expected).norm().item(), bound * expected.norm().item() + 1e-6)

    def test_every_operator_agrees_with_the_host_backend(self):
        for name, op, arguments, keywords in torch_cases.cases():
            with self.subTest(name):
                operator = getattr(ops, op)
                cpu = torch_cases.with_gradients(op, arguments, keywords)
                gpu_arguments = tuple(map(on_gpu, arguments))
                gpu_keywords = {key: on_gpu(value) for key, value in keywords.items()}
                gpu = torch_cases.with_gradients(op, gpu_arguments, gpu_keywords)
                outs, expected = (results(operator(*given[0], **given[1])) for given in (gpu, cpu))
                for out, wanted in zip(outs, expected):
                    self.assertTrue(out.is_cuda)
                    self.assert_close(out, wanted)
                if op in torch_cases.FORWARD_ONLY:
                    continue
                sums = []
                for given in (outs, expected):
                    weights = [torch_cases.tensor(*out.shape, seed=20).to(out.device) for out in given]
                    sums.append(sum((out * weight).sum() for out, weight in zip(given, weights)))
                for total in sums:
                    total.backward()
                for one, other in zip((*gpu[0], *gpu[1].values()), (*cpu[0], *cpu[1].values())):
                    if isinstance(one, torch.Tensor) and one.requires_grad:
                        self.assert_close(one.grad, other.grad)

    def test_views_and_gradients_in_bf16(self):
        q, k, v, *rest = batch()
        matrix = torch.cat([q, k, v], -1).requires_grad_()
        out = ops.hstu_attention(*matrix.split(64, -1), *rest)
        self.assertTrue(torch.equal(out, ops.hstu_attention(q, k, v, *rest)))
        (gradient,) = torch.autograd.grad(out.float().square().sum(), matrix)
        self.assertEqual(gradient.shape, matrix.shape)
        self.assertTrue(gradient.isfinite().all())

    def test_tensors_of_two_devices_are_refused(self):
        q, k, v, offsets, *rest = batch()
        with self.assertRaisesRegex(errors.InvalidArgumentError, "seq_offsets.*CUDA memory"):
            ops.hstu_attention(q, k, v, offsets.cpu(), *rest)

    def test_functions_for_arrays_take_tensors_of_the_gpu(self):
        q, k, v, *rest = batch()
        out = hstujit.attention(q, k, v, *rest)
        self.assertTrue(torch.equal(out, ops.hstu_attention(q, k, v, *rest)))
        gradients = hstujit.attention_backward(q, k, v, out, *rest)
        self.assertTrue(all(gradient.is_cuda for gradient in gradients))

    def test_autocast(self):
        q, k, v, *rest = batch(torch.float32)
        with torch.autocast("cuda", torch.bfloat16):
            self.assertEqual(ops.hstu_attention(q, k, v, *rest).dtype, torch.bfloat16)


@unittest.skipUnless(HAS_GPU, "there is no GPU that PyTorch can use")
class Use(unittest.TestCase):
    def test_work_is_enqueued_on_the_current_stream(self):
        q, k, v, *rest = batch()
        expected = ops.hstu_attention(q, k, v, *rest)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)  # what follows on another stream would come first
            late = q * 1
            out = ops.hstu_attention(late, k, v, *rest)
        stream.synchronize()
        self.assertTrue(torch.equal(out, expected))

    def test_threads_on_streams_of_their_own(self):
        q, k, v, *rest = batch()
        leaf = q.clone().requires_grad_()
        expected = torch.autograd.grad(ops.hstu_attention(leaf, k, v, *rest).float().sum(), leaf)[0]
        torch.cuda.synchronize()
        found, raised = [], []

        def work():
            try:
                with torch.cuda.stream(torch.cuda.Stream()):
                    for _ in range(20):
                        out = ops.hstu_attention(leaf, k, v, *rest)
                        found.append(torch.autograd.grad(out.float().sum(), leaf)[0])
                    torch.cuda.current_stream().synchronize()
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(raised, [])
        self.assertEqual(len(found), 80)
        for gradient in found:  # sums of dq may be in another order
            torch.testing.assert_close(gradient, expected, rtol=2e-2, atol=1e-3)

    def test_a_cuda_graph_of_forward_and_backward(self):
        q, k, v, *rest = batch()
        leaf = q.clone().requires_grad_()

        def step():
            leaf.grad = None
            out = ops.hstu_attention(leaf, k, v, *rest)
            out.float().sum().backward()
            return out

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = step()
        with torch.no_grad():
            leaf.copy_(q * 0.5)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(out, ops.hstu_attention(q * 0.5, k, v, *rest)))

    def test_a_length_that_is_new_in_a_capture_is_refused(self):
        q, k, v, offsets, _, alpha = batch()
        ops.hstu_attention(q, k, v, offsets, 1024, alpha)
        with (
            self.assertRaisesRegex(errors.NotPreparedError, "max_seq_len is 4096.*capture"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            ops.hstu_attention(q, k, v, offsets, 4096, alpha)

    def test_inductor_keeps_cuda_graphs(self):
        q, k, v, *rest = batch()

        def model(q, k, v, offsets):
            return ops.hstu_attention(q * 2, k, v, offsets, *rest[1:]) + 1

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
        for _ in range(4):
            out = compiled(q, k, v, rest[0]).clone()
        torch.testing.assert_close(out, model(q, k, v, rest[0]))
        self.assertEqual(torch._dynamo.utils.counters["inductor"]["cudagraph_skips"], 0)

    def test_replayed_backward_drops_what_forward_dropped(self):
        """With out = x + Y W and Y of dropout, sum(W * dW) of backward's Y is sum((out - x) * dout) of forward's."""
        config = STULayerConfig(64, 2, 32, 32, output_dropout_ratio=0.5)
        offsets = torch.tensor([0, 30, 70, 200], device="cuda")
        rows, dout = torch.randn(2, 200, 64, device="cuda")

        for budget, checkpointed in ((1, False), (1, True), (0, False)):
            with self.subTest(budget=budget, checkpointed=checkpointed):
                layer = STULayer(config).cuda()
                weight = layer._output_weight

                def call(x, layer=layer, checkpointed=checkpointed):
                    given = x, offsets.diff(), offsets, 256
                    return checkpoint(layer, *given, use_reentrant=False) if checkpointed else layer(*given)

                torch._dynamo.reset()
                outs = []
                with torch._functorch.config.patch(activation_memory_budget=budget):
                    compiled = torch.compile(call, mode="reduce-overhead", fullgraph=True)
                    for _ in range(5):  # a step to warm up, one to capture, replays
                        layer.zero_grad()
                        torch.compiler.cudagraph_mark_step_begin()
                        x = rows.clone().requires_grad_()
                        out = compiled(x)
                        out.backward(dout)
                        of_backward, of_forward = (weight * weight.grad).sum(), ((out - x) * dout).sum()
                        torch.testing.assert_close(of_backward, of_forward, rtol=2e-2, atol=2e-2)
                        outs.append(out.detach().clone())
                for index, out in enumerate(outs):
                    self.assertFalse(any(torch.equal(out, other) for other in outs[:index]), "two steps have one mask")


@unittest.skipUnless(HAS_GPU, "there is no GPU that PyTorch can use")
class Kernels(unittest.TestCase):
    """Work that kernels in C++ do by themselves: device, workspace, memory, rows that only offsets tell."""

    def test_a_thread_that_has_launched_nothing(self):
        q, k, v, *rest = batch()
        expected = ops.hstu_attention(q, k, v, *rest)
        torch.cuda.synchronize()
        found = []

        def work():
            found.append(ops.hstu_attention(q, k, v, *rest))
            torch.cuda.synchronize()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
        self.assertTrue(torch.equal(found[0], expected))

    @unittest.skipUnless(HAS_GPU and torch.cuda.device_count() > 1, "there is no GPU but one")
    def test_tensors_of_a_device_that_is_not_the_current_one(self):
        q, k, v, offsets, *rest = batch()
        expected = ops.hstu_attention(q, k, v, offsets, *rest)
        there = [tensor.to("cuda:1") for tensor in (q, k, v, offsets)]
        leaf = there[0].requires_grad_()
        out = ops.hstu_attention(*there, *rest)
        self.assertEqual(out.device, torch.device("cuda:1"))
        self.assertEqual(torch.cuda.current_device(), 0)
        self.assertTrue(torch.equal(out.cpu(), expected.cpu()))
        (gradient,) = torch.autograd.grad(out.float().sum(), leaf)
        self.assertEqual(gradient.device, torch.device("cuda:1"))

    def test_workspaces_go_back_to_the_allocator(self):
        x = torch_cases.tensor(4096, 64).cuda()
        weight = torch.ones(64, device="cuda")
        results = ops.layer_norm_backward(x, x, weight=weight)
        del results
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(20):
            ops.layer_norm_backward(x, x, weight=weight)
        torch.cuda.synchronize()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_memory_that_there_is_not_is_pytorchs_error(self):
        row = torch.zeros(1, 1024, device="cuda")
        huge = row.expand(2**40 // 1024, 1024)  # 4 TiB, of which one row is there
        with self.assertRaises(torch.OutOfMemoryError):
            ops.layer_norm(huge)
        self.assertEqual(ops.layer_norm(row).shape, row.shape)  # and the next call is served

    def test_rows_that_only_offsets_tell_are_read(self):
        dense = torch_cases.tensor(15, 16).cuda()
        for dtype in (torch.int32, torch.int64):
            offsets = torch.tensor([0, 3, 3, 8], device="cuda", dtype=dtype)
            out = ops.dense_to_jagged(dense, offsets, 5)
            self.assertTrue(torch.equal(out, ops.dense_to_jagged(dense, offsets, 5, out_rows=8)))

    def test_new_lengths_in_many_threads_do_not_wait_for_one_another_for_ever(self):
        q, k, v, offsets, _, alpha = batch()
        raised = []

        def work(first):
            try:
                for length in range(first, first + 8):
                    ops.hstu_attention(q, k, v, offsets, 1024 + 64 * length, alpha)
                torch.cuda.synchronize()
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=work, args=(first,), daemon=True) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
            self.assertFalse(thread.is_alive())
        self.assertEqual(raised, [])


@unittest.skipUnless(HAS_GPU, "there is no GPU that PyTorch can use")
class HostTime(unittest.TestCase):
    def test_of_a_call(self):
        """Printed: what it is depends on the machine."""
        program = pathlib.Path(__file__).resolve().parents[2] / "bench" / "host_time.py"
        command = [sys.executable, str(program), "--repeats", "20"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(done.stdout)
        self.assertIn(", a GPU", done.stdout)
