"""PyTorch, or None where it is not installed. With HSTUJIT_TEST_TORCH=1, as in CI, it must be there."""

import os
import pathlib
import sys
import tempfile
import unittest

import support

try:
    import torch
except ModuleNotFoundError:
    if os.environ.get("HSTUJIT_TEST_TORCH") == "1":
        raise
    torch = None


class JaggedAttention(unittest.TestCase):
    """A batch of four sequences, one of them empty, for calls of attention on the host backend."""

    lengths = [40, 0, 60, 1]
    longest = 64

    def setUp(self):
        if not support.has_host_backend():
            self.skipTest("there is no host backend")
        generator = torch.Generator().manual_seed(1)
        self.offsets = torch.tensor([0, 40, 40, 100, 101])
        self.qkv = [torch.randn(101, 2, 16, generator=generator, requires_grad=True) for _ in range(3)]
        self.dout = torch.randn(101, 2, 16, generator=generator)

    def check(self, found, formula, *more):
        """Compares what was computed of ``qkv`` and more tensors, and its gradients, with a formula in float64."""
        leaves = [*self.qkv, *more]
        exact = [tensor.detach().double().requires_grad_() for tensor in leaves]
        wanted = formula(*exact)
        self.assertLess((found.double() - wanted).norm() / wanted.norm(), 1e-3)
        gradients = (
            torch.autograd.grad(found, leaves, self.dout),
            torch.autograd.grad(wanted, exact, self.dout.double()),
        )
        for own, other in zip(*gradients, strict=True):
            self.assertLess((own.double() - other).norm() / other.norm(), 1e-3)


def packaged(program, path):
    """The package of AOTInductor at ``path``, of an exported program. Its headers are not precompiled, which takes
    longer than to compile one package, and keeps ccache from what it has.

    PyTorch 2.11 finds the names of its arrays by the id of an object that may be gone: then it tries again.
    """
    options = {"aot_inductor.precompile_headers": False}
    for _ in range(3):
        try:
            return torch._inductor.aoti_compile_and_package(program, package_path=path, inductor_configs=options)
        except Exception as error:
            if "int_array_" not in str(error):
                raise
            last = error
    raise last


def import_scratch_packages(test, write, packages):
    """During the test, packages of these names are imported from what ``write`` puts into a folder."""
    scratch = tempfile.TemporaryDirectory()
    test.addCleanup(scratch.cleanup)
    write(pathlib.Path(scratch.name))
    sys.path.insert(0, scratch.name)
    test.addCleanup(sys.path.remove, scratch.name)

    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] in packages]:
            del sys.modules[name]

    test.addCleanup(forget)
