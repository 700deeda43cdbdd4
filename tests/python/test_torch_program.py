"""A C++ program without Python calls operators through PyTorch's dispatcher, and runs a package that Python exported
(dispatcher_program.cpp).
"""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from torch_support import packaged, torch

from hstujit import _library

if torch:
    import torch_cases

    import hstujit.torch

FOLDER = pathlib.Path(__file__).resolve().parent


class Stack(torch.nn.Module if torch else object):
    """A stack of two layers whose numbers are part of the graph."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        config = hstujit.torch.STULayerConfig(
            embedding_dim=32, num_heads=2, hidden_dim=16, attention_dim=16, output_dropout_ratio=0.0
        )
        self.stack = hstujit.torch.STUStack([hstujit.torch.STULayer(config) for _ in range(2)]).eval()

    def forward(self, x, lengths, targets):
        offsets = torch.ops.hstujit.complete_cumsum(lengths)
        return self.stack(x, lengths, offsets, 16, targets)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-4000:])
    return done.stdout


@unittest.skipUnless(torch, "PyTorch is not installed")
class Program(unittest.TestCase):
    def test_a_program_without_python(self):
        compiler = shutil.which("c++")
        self.assertIsNotNone(compiler, "there is no C++ compiler")
        with tempfile.TemporaryDirectory() as folder:
            program, package, inputs = (os.path.join(folder, name) for name in ("program", "stack.pt2", "inputs.pt"))
            self.export(package, inputs)
            root, include = pathlib.Path(torch.__file__).parent, FOLDER.parents[1] / "include"
            libraries = [f"-l{name}" for name in ("torch", "torch_cpu", "c10")]
            run([
                compiler, "-std=c++17", "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
                f"-I{include}", f"-isystem{root}/include", f"-isystem{root}/include/torch/csrc/api/include",
                "-c", str(FOLDER / "dispatcher_program.cpp"), "-o", f"{program}.o",
            ])  # fmt: skip
            run([
                compiler, f"{program}.o", "-o", program, f"-L{root}/lib", "-Wl,--no-as-needed", *libraries,
                f"-Wl,-rpath,{root}/lib", "-ldl",
            ])  # fmt: skip
            library = _library.path().parent / "libhstujit_torch.so"
            printed, _, stats = run([program, str(library), package, inputs]).partition("stats ")
        found = dict(line.split(" ", 1) for line in printed.splitlines())
        launched = {launch["kernel"]: launch["count"] for launch in json.loads(stats)["launches"]}
        self.assertEqual(launched["silu_forward_host"], 2)
        self.assertGreaterEqual(launched["hstu_attention_forward_host"], 1)
        self.assertEqual(found.pop("refused").partition("; ")[0], "x has dtype fp64")
        self.assertEqual(sorted(found), ["hstu_attention", "package", "strided", "stu_layer"])
        for name, error in found.items():
            self.assertLess(float(error), 1e-5, name)

    def export(self, package, inputs):
        """Writes the package, and a module whose attributes are tensors and numbers of calls, and what they give."""
        written = torch.nn.Module()
        for name in ("hstu_attention", "stu_layer"):
            cases = itertools.chain(torch_cases.cases(), torch_cases.layers())
            values, named = next(case[2:4] for case in cases if case[1] == name)
            op = getattr(torch.ops.hstujit, name)
            schema = op.default._schema.arguments
            given = {**{argument.name: value for argument, value in zip(schema, values)}, **named}
            with torch.no_grad():
                out = op(**given)
            for argument, value in given.items():
                if value is not None:
                    setattr(written, f"{name}_in_{argument}", value)
            setattr(written, f"{name}_out", out if isinstance(out, torch.Tensor) else out[0])
        stack, lengths, targets = Stack(), torch.tensor([3, 0, 7]), torch.tensor([1, 0, 2])
        x = torch.randn(10, 32)
        sizes = {0: torch.export.Dim("rows", min=2, max=2**20)}, {0: torch.export.Dim("batch", min=2, max=2**20)}
        with torch.no_grad():
            exported = torch.export.export(stack, (x, lengths, targets), dynamic_shapes=(*sizes, sizes[1]))
            packaged(exported, package)
            x, lengths, targets = torch.randn(13, 32), torch.tensor([4, 9]), torch.tensor([2, 1])
            written.package_x, written.package_lengths, written.package_targets = x, lengths, targets
            written.package_out = stack(x, lengths, targets)
        torch.jit.script(written).save(inputs)


if __name__ == "__main__":
    unittest.main()
