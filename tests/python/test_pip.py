"""``pip install .`` and ``pip install -e .`` in this clone, with scikit-build-core (pyproject.toml), in build/pip.

tools/python_tests.sh runs them: the first build takes a minute with a warm ccache, later ones a few seconds.
"""

import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import unittest
import zipfile

from test_wheel import ROOT, is_binary, metadata, run

BUILD = ROOT / "build" / "pip"
CHECK = """
import hstujit
config = {"version": 1, "ops": [{"name": "a", "op": "layer_norm", "width": 64, "rows": 100}]}
hstujit.run(config, backend="host", check=True)
print(hstujit.__file__)
print(hstujit._library.path())
"""


@unittest.skipUnless(importlib.util.find_spec("scikit_build_core"), "scikit-build-core is not installed")
class Pip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-build-isolation", "--no-deps")
        run(*pip, "--wheel-dir", cls.folder, ROOT)
        (cls.wheel,) = cls.folder.glob("hstujit-*.whl")

    def installed(self, wheel):
        """The folder of programs of a new environment that has this wheel alone."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--no-index", wheel)
        return folder / "bin"

    def test_the_wheel_holds_an_installation_and_nothing_twice(self):
        self.assertTrue(self.wheel.name.endswith(f"-py3-none-linux_{os.uname().machine}.whl"))
        names = [name.removeprefix("hstujit/") for name in zipfile.ZipFile(self.wheel).namelist()]
        sources = [path.relative_to(ROOT / "python" / "hstujit") for path in (ROOT / "python").rglob("*.py")]
        self.assertEqual({name for name in names if name.endswith(".py")}, {path.as_posix() for path in sources})
        others = [name for name in names if not re.search(r"\.py$|\.dist-info/|^share/hstujit/records/", name)]
        soname = next(name for name in others if re.fullmatch(r"lib/libhstujit\.so\.\d+", name))
        parts = ("compiler", "host", "operations", "runtime", "torch")
        licences = [f"share/doc/hstujit/{name}" for name in ("LICENSE", *(f"NOTICES.{part}" for part in parts))]
        libraries = [f"lib/libhstujit_{name}.so" for name in ("bundle", "compiler", "host", "operations", "torch")]
        programs = ["bin/hstujit", "libexec/hstujit/hstujit-worker"]
        stubs = ["__init__.pyi", "operators.pyi", "py.typed"]
        expected = [soname, *libraries, *programs, *stubs, *licences]
        self.assertEqual(sorted(others), sorted(expected))
        self.assertGreater(sum(name.startswith("share/hstujit/records/") for name in names), 10)

    def test_its_binaries_are_stripped(self):
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(folder)
            binaries = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and is_binary(path)]
            self.assertEqual(len(binaries), 8)
            for path in binaries:
                self.assertNotIn(".symtab", run("readelf", "-SW", path).stdout)

    def test_neither_tests_nor_benchmarks_are_built(self):
        self.assertEqual([path.name for path in (BUILD / "bin").iterdir()], ["hstujit"])
        self.assertFalse((BUILD / "tests").exists())

    def test_the_metadata(self):
        head = metadata(self.wheel)
        version = re.search(r"project\(hstujit VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual((head["Name"], head["Version"]), ("hstujit", version))
        self.assertEqual(head.get_all("Provides-Extra"), ["host", "nvrtc", "torch"])
        self.assertEqual(head.get_all("License-File"), ["LICENSE"])
        self.assertIsNone(head["Project-URL"])

    def test_it_computes_on_the_cpu(self):
        programs = self.installed(self.wheel)
        package, library = run(programs / "python", "-c", CHECK).stdout.splitlines()[-2:]
        self.assertTrue(library.startswith(str(pathlib.Path(package).parent / "lib")), library)
        self.assertTrue(library.startswith(str(programs.parent)), library)
        self.assertEqual(run(programs / "hstujit", "--version").stdout.split()[0], "hstujit")

    def test_an_editable_installation_has_the_sources_of_the_clone_and_the_libraries_of_the_build(self):
        """Calls the hook of `pip install -e .`, because pip would install into the environment of these tests."""
        folder = self.folder / "editable"  # the name is that of the other wheel
        build = f"from scikit_build_core.build import build_editable; build_editable({str(folder)!r})"
        run(sys.executable, "-c", build, cwd=ROOT)
        (editable,) = folder.iterdir()
        self.assertLess(editable.stat().st_size, 100e3)
        programs = self.installed(editable)
        package, library = run(programs / "python", "-c", CHECK).stdout.splitlines()[-2:]
        self.assertEqual(pathlib.Path(package), ROOT / "python" / "hstujit" / "__init__.py")
        self.assertEqual(pathlib.Path(library).parent, BUILD / "lib")
        self.assertIn(str(BUILD / "libexec"), run(programs / "hstujit", "doctor", check=False).stdout)


if __name__ == "__main__":
    unittest.main()
