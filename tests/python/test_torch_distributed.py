"""Layers in two processes, under FSDP and DistributedDataParallel: results and gradients are those of one."""

import os
import tempfile
import unittest

import support
from torch_support import torch

if torch:
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    from hstujit.torch import STULayer, STULayerConfig

PROCESSES = 2


def train(layer, rank):
    """The result on this rank's own rows, and the gradients."""
    x = torch.randn(PROCESSES, 7, 64, generator=torch.Generator().manual_seed(2))[rank]
    offsets = torch.tensor([0, 3, 7])
    out = layer(x, offsets.diff(), offsets, 16)
    out.sum().backward()
    return out


def new_layer():
    torch.manual_seed(1)
    return STULayer(STULayerConfig(embedding_dim=64, num_heads=2, hidden_dim=32, attention_dim=32))


def mean_gradients():
    """The mean of what each rank's rows give alone, with which both processes should end."""
    layer = new_layer().eval()
    for rank in range(PROCESSES):
        train(layer, rank)
    return [parameter.grad / PROCESSES for parameter in layer.parameters()]


def run(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=PROCESSES)
    wanted = mean_gradients()
    alone = train(new_layer().eval(), rank)
    sharded, copied = fully_shard(new_layer().eval()), DistributedDataParallel(new_layer().eval())
    for layer in (sharded, copied):
        torch.testing.assert_close(train(layer, rank), alone, rtol=0, atol=0)
        for parameter, gradient in zip(layer.parameters(), wanted, strict=True):
            whole = parameter.grad.full_tensor() if layer is sharded else parameter.grad
            torch.testing.assert_close(whole, gradient, rtol=1e-5, atol=1e-5)
    dist.destroy_process_group()


@unittest.skipUnless(torch and torch.distributed.is_available(), "PyTorch is not installed, or without processes")
class Distributed(unittest.TestCase):
    def test_two_processes_train_what_one_does(self):
        if not support.has_host_backend():
            self.skipTest("there is no host backend")
        os.environ["OMP_NUM_THREADS"] = "1"
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(run, args=(folder,), nprocs=PROCESSES)


if __name__ == "__main__":
    unittest.main()
