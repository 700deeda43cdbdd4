"""The wheels: made from an installation, installed into an empty environment, and used there.

HSTUJIT_PREFIX names the installation, stripped, with the components runtime, operations, compiler, torch and host;
HSTUJIT_WHEELS the folder of wheels that were made from it, if they were.
"""

import base64
import csv
import email
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = os.environ.get("HSTUJIT_PREFIX")
# Libraries of the system that may be needed: a part of what every manylinux allows.
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
}


def run(*command, check=True, **options):
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def is_binary(path):
    return path.read_bytes()[:4] == b"\x7fELF"


def symbols(path):
    return run("objdump", "-T", path).stdout


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@unittest.skipUnless(PREFIX, "HSTUJIT_PREFIX names no installation")
class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        wheels = pathlib.Path(os.environ.get("HSTUJIT_WHEELS") or cls.folder / "wheels")
        if not wheels.exists():
            cls.build(wheels)
        cls.wheel, cls.host = sorted(wheels.iterdir())
        run(sys.executable, "-m", "venv", cls.folder / "venv")
        cls.python = cls.folder / "venv" / "bin" / "python"
        cls.pip("install", cls.wheel)

    @classmethod
    def build(cls, folder):
        run(sys.executable, ROOT / "tools" / "wheels.py", "--prefix", PREFIX, "--out", folder)

    @classmethod
    def pip(cls, *arguments, check=True):
        command = (cls.python, "-m", "pip", "--disable-pip-version-check", arguments[0])
        options = ("--no-index",) if arguments[0] == "install" else ()
        return run(*command, *options, *arguments[1:], check=check)

    def test_names_and_sizes(self):
        for wheel, name in ((self.wheel, "hstujit-"), (self.host, "hstujit_host-")):
            self.assertTrue(wheel.name.startswith(name))
            self.assertRegex(wheel.name, r"-py3-none-manylinux_2_\d+_x86_64\.whl$")
        self.assertLess(self.wheel.stat().st_size, 10e6)
        self.assertFalse(any("libhstujit_host" in name for name in zipfile.ZipFile(self.wheel).namelist()))

    def test_the_platform_has_every_symbol_of_glibc_that_is_wanted(self):
        for wheel, count in ((self.wheel, 7), (self.host, 1)):
            newest = int(re.search(r"manylinux_2_(\d+)_", wheel.name).group(1))
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
                binaries = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and is_binary(path)]
                self.assertEqual(len(binaries), count)
                wanted = {int(v) for path in binaries for v in re.findall(r"GLIBC_2\.(\d+)", symbols(path))}
            self.assertGreaterEqual(newest, max(wanted))

    def test_nothing_is_needed_but_the_system_and_the_wheel(self):
        for wheel in (self.wheel, self.host):
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
                binaries = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and is_binary(path)]
                inside = {path.name for path in binaries}
                for path in binaries:
                    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path).stdout)
                    self.assertIn("libc.so.6", needed)
                    self.assertLessEqual(set(needed), SYSTEM | inside, path.name)

    @unittest.skipUnless(importlib.util.find_spec("auditwheel"), "auditwheel is not installed")
    def test_auditwheel_agrees_with_the_platform(self):
        for wheel in (self.wheel, self.host):
            platform = wheel.stem.rpartition("-")[2]
            said = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel).stdout.split())
            self.assertIn(f'is consistent with the following platform tag: "{platform}"', said)

    def test_the_metadata_names_the_licence_and_the_notices(self):
        of_all = ("fmt", "JSON for Modern C++", "libsodium", "Zstandard")
        of_wheels = (
            (self.wheel, ("runtime", "operations", "compiler"), (*of_all, "CLI11", "LLVM and MLIR")),
            (self.host, ("host",), (*of_all, "zlib", "LLVM and MLIR")),
        )
        for wheel, components, titles in of_wheels:
            head = metadata(wheel)
            self.assertEqual((head["Metadata-Version"], head["License-Expression"]), ("2.4", "Apache-2.0"))
            files = head.get_all("License-File")
            self.assertEqual(files, ["LICENSE", *(f"NOTICES.{component}" for component in components)])
            archive = zipfile.ZipFile(wheel)
            folder = next(name for name in archive.namelist() if name.endswith("/METADATA")).removesuffix("METADATA")
            texts = [archive.read(f"{folder}licenses/{file}").decode() for file in files]
            self.assertEqual(texts[0], (ROOT / "LICENSE").read_text())
            for title in titles:
                notice = next((text for text in texts if f"==== {title}\n" in text), "")
                self.assertRegex(notice.partition(f"==== {title}\n")[2][:4000], "(?i)copyright", title)

    def test_the_extras_and_python_are_those_of_pyproject(self):
        head, project = metadata(self.wheel), (ROOT / "pyproject.toml").read_text()
        extras = dict(re.findall(r'(?m)^(nvrtc|torch) = \["(.*)"\]$', project))
        version = head["Version"]
        expected = [f'hstujit-host=={version}; extra == "host"', *(f'{extras[of]}; extra == "{of}"' for of in extras)]
        self.assertEqual(head.get_all("Requires-Dist"), expected)
        self.assertEqual(head.get_all("Provides-Extra"), ["host", "nvrtc", "torch"])
        for wheel in (self.wheel, self.host):
            self.assertIn(f'requires-python = "{metadata(wheel)["Requires-Python"]}"', project)

    def test_links_lead_somewhere_on_the_page_of_an_index(self):
        for wheel in (self.wheel, self.host):
            head = metadata(wheel)
            self.assertIsNone(head["Home-page"])  # the project's pages name no address of it
            self.assertIsNone(head["Project-URL"])
            links = re.findall(r"\]\(([^)\s]+)\)", head.get_payload())
            self.assertEqual([link for link in links if not re.match("https?://", link)], [])
        self.assertIn("operator of ops.md as a function", metadata(self.wheel).get_payload())

    def test_uninstalling_in_either_order_leaves_nothing(self):
        folder = self.folder / "left"
        run(sys.executable, "-m", "venv", folder)
        python = folder / "bin" / "python"
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        run(*pip, "list")  # what pip compiles of itself is there before

        def files():
            return {path for path in folder.rglob("*") if "pip" not in path.parts}

        before = files()
        for order in (("hstujit", "hstujit-host"), ("hstujit-host", "hstujit")):
            run(*pip, "install", "--no-index", self.wheel, self.host)
            run(python, "-c", "import hstujit.__main__, hstujit.operators")
            run(folder / "bin" / "hstujit", "--version")
            for name in order:
                run(*pip, "uninstall", "--yes", name)
            self.assertEqual(files() - before, set(), order)

    def test_the_same_input_gives_the_same_bytes(self):
        self.build(self.folder / "again")
        self.assertEqual((self.folder / "again" / self.wheel.name).read_bytes(), self.wheel.read_bytes())

    def test_another_build_replaces_an_earlier_one(self):
        """Wheels with the same files but for one, in one folder: pip keeps what has the version that it is given."""
        changed, prefix = self.folder / "changed", self.folder / "prefix"
        shutil.copytree(PREFIX, prefix, symlinks=True)
        record = next((prefix / "share" / "hstujit" / "records").rglob("*.json"))
        record.write_text(record.read_text() + "\n")
        changed.mkdir()
        for earlier in (self.wheel, self.host):
            shutil.copy(earlier, changed)
        run(sys.executable, ROOT / "tools" / "wheels.py", "--prefix", prefix, "--out", changed)
        wheel, host = sorted(changed.iterdir())  # the earlier ones are gone
        self.assertNotEqual((wheel.name, host.name), (self.wheel.name, self.host.name))
        place = ("--target", self.folder / "target")
        refused = self.pip("install", *place, self.wheel, host, check=False)  # each wants its own build
        self.assertIn("conflict", refused.stdout + refused.stderr)
        self.addCleanup(self.pip, "install", self.wheel)
        self.pip("install", wheel)
        installed = next(self.python.parent.parent.glob(f"lib/*/site-packages/hstujit/{record.relative_to(prefix)}"))
        self.assertEqual(installed.read_text(), record.read_text())

    def test_the_record_lists_every_file_with_its_digest(self):
        for wheel in (self.wheel, self.host):
            archive = zipfile.ZipFile(wheel)
            record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
            listed = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
            self.assertEqual(set(listed), set(archive.namelist()))
            for name, digest in listed.items():
                if name != record:
                    found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).decode().rstrip("=")
                    self.assertEqual(digest, "sha256=" + found)

    def test_it_is_imported_and_used_without_anything_else(self):
        code = (
            "import hstujit, json; print(hstujit.__version__); print(hstujit._library.path());"
            "print(json.dumps(hstujit.explain({'version': 1, 'ops': [{'name': 'a', 'op': 'hstu_attention',"
            "'attn_dim': 64, 'hidden_dim': 64, 'max_seq_len': 256}]}, arch='H200'))[:20])"
        )
        lines = run(self.python, "-c", code).stdout.splitlines()
        self.assertIn(f"hstujit-{lines[0]}", self.wheel.name)
        self.assertTrue(lines[1].startswith(str(self.folder / "venv")))

    def test_the_program(self):
        by_module = run(self.python, "-m", "hstujit", "--version").stdout
        by_name = run(self.python.parent / "hstujit", "--version").stdout
        self.assertEqual(by_module, by_name)
        report = run(self.python, "-m", "hstujit", "doctor", check=False).stdout
        self.assertIn(f"{self.folder}/venv", report)
        self.assertIn("share/hstujit/records", report)

    def test_the_host_backend_is_a_wheel_of_its_own(self):
        config = self.folder / "config.json"
        config.write_text('{"version": 1, "ops": [{"name": "a", "op": "layer_norm", "width": 64, "rows": 100}]}')
        code = f"import hstujit; hstujit.run('{config}', backend='host', check=True)"
        refused = run(self.python, "-c", code, check=False)
        self.assertNotEqual(refused.returncode, 0)
        command = re.search(r"pip install build/wheel/(\S+)", refused.stderr)
        self.assertTrue(self.host.match(command[1]), refused.stderr)
        self.pip("install", self.host)
        run(self.python, "-c", code)
        run(self.python, "-m", "hstujit", "run", "--config", config, "--backend", "host", "--check")
        self.pip("uninstall", "--yes", "hstujit-host")
        self.assertNotEqual(run(self.python, "-c", code, check=False).returncode, 0)

    def test_stubs_name_every_operator(self):
        names = set(zipfile.ZipFile(self.wheel).namelist())
        self.assertLessEqual({"hstujit/py.typed", "hstujit/__init__.pyi", "hstujit/operators.pyi"}, names)
        stub = zipfile.ZipFile(self.wheel).read("hstujit/operators.pyi").decode()
        compile(stub, "operators.pyi", "exec")
        found = run(self.python, "-c", "from hstujit import operators; print(*operators.names())").stdout.split()
        for name in found:
            self.assertRegex(stub, rf"(?m)^(def {name}\(|{name} = )")


class Platforms(unittest.TestCase):
    def test_libstdcxx_asks_for_a_glibc_too(self):
        spec = importlib.util.spec_from_file_location("wheels", ROOT / "tools" / "wheels.py")
        wheels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(wheels)
        self.assertEqual([wheels.glibc_beside(patch) for patch in (9, 29, 30, 32)], [17, 34, 35, 39])
        self.assertEqual(f"glibc 2.{wheels.glibc_beside(1000)}", os.confstr("CS_GNU_LIBC_VERSION"))


class Mistakes(unittest.TestCase):
    def test_a_folder_that_is_no_installation(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, ROOT / "tools" / "wheels.py", "--prefix", folder, "--out", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no installation", done.stderr)
