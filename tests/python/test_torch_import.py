"""Effects of ``import hstujit.torch``, each in a process of its own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from torch_support import torch

import hstujit


def printed(code, **variables):
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=280)
    if run.returncode:
        raise AssertionError(run.stderr)
    return run.stdout


@unittest.skipUnless(torch, "PyTorch is not installed")
class Import(unittest.TestCase):
    def test_dynamo_is_not_imported_before_something_is_compiled(self):
        code = """
import sys, torch, hstujit.torch
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
x = torch.randn(3, 16)
compiled = torch.compile(torch.ops.hstujit.layer_norm, backend="eager", fullgraph=True)
print(torch.equal(compiled(x), torch.ops.hstujit.layer_norm(x)), "torch._dynamo" in sys.modules)
"""
        self.assertEqual(printed(code), "[]\nTrue True\n")

    def test_no_context_and_no_op_is_made(self):
        code = """
import torch
from hstujit._library import library
called = []
def counted(name, function):
    return lambda *arguments: called.append(name) or function(*arguments)
for name in ("context_create", "call_create", "op_create_with", "op_from_config", "operators"):
    setattr(library, f"hstujit_{name}", counted(name, getattr(library, f"hstujit_{name}")))
import hstujit.torch
print(called)
torch.ops.hstujit.layer_norm(torch.randn(3, 16))
print(*sorted(set(called)))
"""
        self.assertEqual(printed(code), "['operators']\ncontext_create operators\n")

    def test_it_takes_a_fraction_of_the_time_of_pytorch(self):
        """0.3 s of processor time at most, and more on a machine on which PyTorch's own import takes longer."""
        code = """
import time
begin = time.process_time()
import torch
middle = time.process_time()
import hstujit.torch
print(middle - begin, time.process_time() - middle)
"""
        for _ in range(3):  # on a loaded machine
            others, own = map(float, printed(code).split())
            if own < max(0.3, others / 3):
                break
        self.assertLess(own, max(0.3, others / 3))

    def test_the_first_call_makes_the_default_context(self):
        code = """
import os, sys, torch, hstujit.torch
hstujit.layer_norm.__doc__
print(hstujit.context._default)
os.environ["HSTUJIT_CACHE_DIR"] = sys.argv[1]
torch.ops.hstujit.layer_norm(torch.randn(3, 16))
print(hstujit.Cache().path)
"""
        with tempfile.TemporaryDirectory() as folder:
            code = code.replace("sys.argv[1]", repr(folder))
            self.assertEqual(printed(code), f"None\n{folder}\n")

    def test_an_interpreter_that_ends_leaves_the_callbacks_of_another_one(self):
        code = """
try:
    import _interpreters
    make, run, end = lambda: _interpreters.create("legacy"), _interpreters.exec, _interpreters.destroy
except ImportError:
    import _xxsubinterpreters as _interpreters
    make, run, end = lambda: _interpreters.create(isolated=False), _interpreters.run_string, _interpreters.destroy
import hstujit
other = make()
run(other, "import hstujit")
end(other)
seen = []
config = [{"name": "a", "op": "silu", "width": 8, "rows": 3}]
try:
    hstujit.prewarm(config, arch="H200", check=True, progress=lambda *event: seen.append(event))
except hstujit.errors.CacheMissError:
    print(len(seen))
"""
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(printed(code, HSTUJIT_CACHE_DIR=folder), "1\n")


GRAPH = """
import torch, hstujit.torch
assert "hstujit" in torch.compiler.config.cache_key_tag
torch.compiler.config.cache_key_tag = "mine"
offsets = torch.tensor([0, 3, 7])
q, k = torch.randn(7, 2, 16, requires_grad=True), torch.randn(7, 2, 16)  # one gradient, so that Inductor adds none up
call = lambda q: torch.ops.hstujit.hstu_attention(q, k, k, offsets, 16, 0.1)
found, = torch.autograd.grad(torch.compile(call)(q).sum(), q)
expected, = torch.autograd.grad(call(q).sum(), q)
from torch._dynamo.utils import counters
def cached():
    return counters["aot_autograd"]["autograd_cache_hit"]
print(cached(), round(float(found.norm() / expected.norm()), 3))
torch._dynamo.reset()
torch.autograd.grad(torch.compile(call)(q).sum(), q)
print(cached())
"""


@unittest.skipUnless(torch and hasattr(torch.compiler, "config"), "PyTorch before 2.7 has no tag of its caches")
class Caches(unittest.TestCase):
    def test_another_build_does_not_run_the_graph_of_this_one(self):
        """Though the model sets a tag of its own after the import."""
        with tempfile.TemporaryDirectory() as folder:
            caches = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
            other = pathlib.Path(folder, "other", "hstujit")
            own = pathlib.Path(hstujit.__file__).parent
            folders = ("lib", "bin", "libexec", "share")
            shutil.copytree(own, other, ignore=shutil.ignore_patterns("__pycache__", *folders))
            for name in folders:
                if (own / name).exists():
                    (other / name).symlink_to(own / name)
            source = other / "torch" / "_autograd.py"
            before = "results = self.compute("
            self.assertIn(before, source.read_text())
            # By an operator that Inductor calls: to compile one of its own would take a quarter of a minute.
            changed = source.read_text().replace(before, "results = _changed(self.compute)(")
            source.write_text(
                changed + "\n\ndef _changed(op):\n"
                "    silu = lambda r: torch.ops.hstujit.silu(r.flatten(1)).view_as(r) if r.dim() == 3 else r\n"
                "    return lambda *a, **k: tuple(map(silu, op(*a, **k)))\n"
            )
            found = "0 1.0\n1\n"  # anew, and then its own graph again
            self.assertEqual(printed(GRAPH, **caches), found)
            path = os.pathsep.join([str(other.parent), os.environ.get("PYTHONPATH", "")])
            self.assertEqual(printed(GRAPH, PYTHONPATH=path, **caches), found)

    def test_a_tag_of_the_user_stays(self):
        code = "import torch\ntorch.compiler.config.cache_key_tag = 'mine'\nimport hstujit.torch\n"
        self.assertRegex(printed(f"{code}print(torch.compiler.config.cache_key_tag)"), "^mine hstujit-[0-9a-f]{16}$")


if __name__ == "__main__":
    unittest.main()
