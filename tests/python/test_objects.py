"""Op, Context, Config, Cache, and commands on configs."""

import gc
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy
from support import OFFSETS, ROWS, attention, closeness, random

import hstujit
from hstujit import errors

INSTANCE = {"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 32, "dtype": "fp32"}
CONFIG = {"version": 1, "ops": [{"name": "a", **INSTANCE, "max_seq_len": 256, "lengths": {"batch": 2}}]}


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.context = hstujit.Context(cache_dir=self.folder / "cache")


class Ops(Scratch):
    def arguments(self):
        q, k, v = random(ROWS, 2, 64), random(ROWS, 2, 64, seed=1), random(ROWS, 2, 32, seed=2)
        out = numpy.empty((ROWS, 2, 32), numpy.float32)
        return {"q": q, "k": k, "v": v, "seq_offsets": OFFSETS, "max_seq_len": 8, "alpha": 0.125,
                "scaling_seqlen": 0, "out": out}  # fmt: skip

    def test_prepare_and_launch(self):
        op = hstujit.Op(INSTANCE, backend="host", context=self.context)
        arguments = self.arguments()
        with self.assertRaises(errors.NotPreparedError):
            op.launch(**arguments)
        op.prepare(8)
        self.assertEqual(op.workspace_size(**arguments), 0)
        op.launch(**arguments)
        expected = attention(arguments["q"], arguments["k"], arguments["v"], OFFSETS, 8, 0.125)
        self.assertLess(closeness(arguments["out"], expected), 1e-5)

    def test_signature(self):
        signature = hstujit.Op({**INSTANCE, "num_targets": True}).signature
        self.assertEqual([argument.name for argument in signature.outputs], ["out"])
        self.assertEqual(signature.find("q").shape_text, "(L, 2, 64)")
        self.assertEqual(signature[signature.max_rows].name, "max_seq_len")
        self.assertIsNone(signature.find("rab"))

    def test_mistakes(self):
        op = hstujit.Op(INSTANCE, backend="host", context=self.context)
        op.prepare(8)
        for name, value, words in (("q", None, "q is missing"), ("rab", 1, "rab is not an argument"),
                                   ("out", "x", "out is of type str")):  # fmt: skip
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                op.launch(**{**self.arguments(), name: value})
        with self.assertRaisesRegex(errors.InvalidConfigError, 'did you mean "heads"'):
            hstujit.Op({**INSTANCE, "head": 3})
        with self.assertRaisesRegex(errors.InvalidArgumentError, "direction is 'up'.*'forward'"):
            hstujit.Op(INSTANCE, direction="up")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "backend is 'tpu'; allowed: 'cuda', 'host'"):
            hstujit.Op(INSTANCE, backend="tpu")
        for name, value, meant in (("direction", "foward", "forward"), ("backend", "hots", "host")):
            words = f"{name} is {value!r}, did you mean {meant!r}\\?; allowed: "
            with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                hstujit.Op(INSTANCE, **{name: value})
        with self.assertRaisesRegex(errors.InvalidArgumentError, "backend is 'hots', did you mean 'host'"):
            hstujit.run(CONFIG, backend="hots", context=self.context)

    def test_an_op_outlives_its_context(self):
        op = hstujit.Op(INSTANCE, backend="host", context=hstujit.Context(cache_dir=self.folder / "other"))
        gc.collect()
        op.prepare(8)
        arguments = self.arguments()
        op.launch(**arguments)
        self.assertTrue(numpy.isfinite(arguments["out"]).all())

    def test_stats_are_those_of_its_context(self):
        context, other = (hstujit.Context(cache_dir=self.folder / name) for name in ("stats", "other"))
        op = hstujit.Op(INSTANCE, backend="host", context=context)
        op.prepare(8)
        for _ in range(3):
            op.launch(**self.arguments())
        name = "hstu_attention_forward_host"
        launched = {"op": "hstu_attention", "kernel": name, "key": f"host:{name}", "count": 3}
        self.assertEqual(context.stats()["launches"], [launched])
        self.assertEqual(other.stats()["launches"], [])
        line = f'hstujit_launches_total{{op="hstu_attention",kernel="{name}",key="host:{name}"}} 3\n'
        self.assertIn(line, context.prometheus())

    def test_from_config(self):
        op = hstujit.Op.from_config(hstujit.Config(CONFIG), "a", direction="backward")
        self.assertEqual([argument.name for argument in op.signature.outputs], ["dq", "dk", "dv"])
        with self.assertRaises(errors.Error):
            hstujit.Op.from_config(hstujit.Config(CONFIG), "b")


class Contexts(Scratch):
    def test_mistakes(self):
        with self.assertRaisesRegex(errors.InvalidArgumentError, "on_miss is 'later'; allowed: 'heuristic'.*, or None"):
            hstujit.Context(on_miss="later")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "on_miss is 'heuristics', did you mean 'heuristic'"):
            hstujit.Context(on_miss="heuristics")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "NUL"):
            hstujit.Context(cache_dir="a\0b")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "context is 3"):
            hstujit.set_default_context(3)
        with mock.patch.dict(os.environ, HSTUJIT_ON_MISS="perhaps"), self.assertRaisesRegex(errors.Error, "perhaps"):
            hstujit.Context()

    def test_layers_that_are_only_read(self):
        path, other = self.folder / "layer", self.folder / "other"
        path.mkdir()

        def layers(cache_path):
            context = hstujit.Context(cache_dir=self.folder / "cache", cache_path=cache_path)
            report = hstujit.explain(CONFIG, arch="H200", context=context)
            found = report["instances"][0]["cache"]["searched"] + [
                layer["path"] for layer in report.get("passed_over", [])
            ]
            return [name for name in found if name in (str(path), str(other))]

        for one in (path, str(path), [path], (str(path),)):
            self.assertEqual(layers(one), [str(path)])
        for both in (f"{path}:{other}", [path, other], (str(path), other)):
            self.assertEqual(layers(both), [str(path), str(other)])
        with mock.patch.dict(os.environ, HSTUJIT_CACHE_PATH=str(path)):
            self.assertEqual(layers(None), [str(path)])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "cache_path has 'a:b'; a path with ':' cannot be one"):
            hstujit.Context(cache_path=[path, "a:b"])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^cache_path has an empty path; each layer must be a"):
            hstujit.Context(cache_path=[path, ""])

    def test_doctor(self):
        self.assertIn("findings", self.context.doctor())


class Configs(Scratch):
    def test_a_dict_and_a_file_are_the_same(self):
        path = self.folder / "model.json"
        path.write_text(json.dumps(CONFIG))
        self.assertEqual(hstujit.Config(path).describe(), hstujit.Config(CONFIG).describe())
        self.assertEqual(hstujit.Config.parse(json.dumps(CONFIG)).describe()["instances"][0]["name"], "a")

    def test_all_mistakes_at_once(self):
        with self.assertRaises(errors.InvalidConfigError) as raised:
            hstujit.Config.parse('{"version": 1, "ops": [{"op": "hstu_atention"}, {"nme": 1}]}', "model.json")
        self.assertGreaterEqual(len(str(raised.exception).splitlines()), 2)
        self.assertIn("model.json:1:", str(raised.exception))
        with self.assertRaises(errors.Error):
            hstujit.Config(self.folder / "none.json")

    def test_mistakes_of_a_dict_are_named_without_a_line(self):
        wrong = [{"name": "a", **INSTANCE, "attn_dim": 260, "max_seq_len": 8}, {"nme": 1}]
        for call in (hstujit.Config, hstujit.explain, hstujit.check_config):
            with self.assertRaises(errors.InvalidConfigError) as raised:
                call({"version": 1, "ops": wrong})
            lines = str(raised.exception).splitlines()
            self.assertTrue(lines[0].startswith("ops[0].attn_dim is 260; allowed: "), lines)
            self.assertTrue(all(line.startswith("ops[1]") for line in lines[1:]), lines)
            with self.assertRaisesRegex(errors.InvalidConfigError, r"^\[0\].attn_dim is 260"):
                call(wrong)
        with self.assertRaisesRegex(errors.InvalidConfigError, "\nand 80 more$"):
            hstujit.Config([1] * 100)
        for value in (float("nan"), object(), {1}):
            with self.assertRaisesRegex(errors.InvalidConfigError, "^config cannot be written as JSON: "):
                hstujit.Config({"version": 1, "ops": [{}, {"alpha": value}]})
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(errors.InvalidConfigError, "^config cannot be written as JSON: Circular"):
            hstujit.Config(endless)
        for value in (7, None):
            with self.assertRaisesRegex(errors.InvalidArgumentError, f"^config is {value}; it must be a path, a dict"):
                hstujit.check_config(value)

    def test_a_text_in_place_of_a_path(self):
        for text in (json.dumps(CONFIG), f" {json.dumps(CONFIG['ops'])}"):
            with self.assertRaisesRegex(errors.NotFoundError, r"; a config that is a text is Config.parse\(text\)$"):
                hstujit.check_config(text)
        with self.assertRaisesRegex(errors.NotFoundError, "No such file or directory$"):
            hstujit.check_config("model.json")

    def test_numbers_of_numpy_are_numbers_in_a_config(self):
        instance = {**CONFIG["ops"][0], "attn_dim": numpy.int64(64), "alpha": numpy.float32(0.5)}
        described = hstujit.Config([instance]).describe()
        self.assertEqual(described, hstujit.Config([{**instance, "attn_dim": 64, "alpha": 0.5}]).describe())
        self.assertTrue(
            hstujit.Op({**INSTANCE, "heads": numpy.int32(2)}, backend="host", context=self.context).signature
        )

    def test_arguments_of_another_kind_are_named(self):
        op = hstujit.Op(INSTANCE, backend="host", context=self.context)
        for wrong, call in (
            ("jobs is 'x'; it must be an integer", lambda: hstujit.prewarm(CONFIG, jobs="x")),
            ("budget_s is '60s'; it must be a real number", lambda: hstujit.tune(CONFIG, budget_s="60s")),
            ("max_rows is '3'; it must be an integer", lambda: hstujit.run(CONFIG, max_rows="3")),
            ("max_seq_len is 'x'; it must be an integer", lambda: op.prepare("x")),
            ("context is 'x'; it must be a hstujit.Context, ", lambda: hstujit.Cache("x")),
            ("context is 'x'; it must be a hstujit.Context, ", lambda: hstujit.Op(INSTANCE, context="x")),
            ("context is 'x'; it must be a hstujit.Context, ", lambda: hstujit.complete_cumsum(OFFSETS, context="x")),
            ("instance is 'layer_norm'; it must be a dict", lambda: hstujit.Op("layer_norm")),
            ("instance cannot be written as JSON: {1} is ", lambda: hstujit.Op({**INSTANCE, "attn_dim": {1}})),
        ):
            with self.assertRaisesRegex(errors.InvalidArgumentError, "^" + re.escape(wrong)):
                call()

    def test_without_a_cache_directory_there_is_no_path(self):
        names = "HSTUJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"
        before = {name: os.environ.pop(name) for name in names if name in os.environ}
        try:
            for nowhere in (None, ""):
                cache = hstujit.Cache(hstujit.Context(cache_dir=nowhere))
                with self.assertRaisesRegex(errors.NotFoundError, "^there is no cache directory: HSTUJIT_CACHE_DIR, "):
                    cache.path  # noqa: B018
        finally:
            os.environ.update(before)

    def test_arguments_of_a_like_kind_are_taken(self):
        class Derived(hstujit.Context):
            pass

        context = Derived(cache_dir=self.folder / "derived")
        self.assertTrue(hstujit.Cache(context).path)
        self.assertTrue(hstujit.check_config(CONFIG, arch="H200", context=context))
        report = hstujit.run(CONFIG, backend="host", check=numpy.bool_(True), max_rows=numpy.int64(5), context=context)
        self.assertTrue(report)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "^device is 3; the host backend runs on no CUDA"):
            hstujit.run(CONFIG, backend="host", device=3, context=context)

    def test_a_list_of_instances_is_a_config(self):
        self.assertEqual(hstujit.Config(CONFIG["ops"]).describe(), hstujit.Config(CONFIG).describe())
        self.assertTrue(hstujit.check_config(tuple(CONFIG["ops"]), arch="H200", context=self.context))

    def test_schema(self):
        self.assertIn("properties", hstujit.config_schema())


class Commands(Scratch):
    def test_explain_and_check_need_no_gpu(self):
        self.assertIn("hstu_attention", json.dumps(hstujit.explain(CONFIG, arch="H200", context=self.context)))
        self.assertTrue(hstujit.check_config(CONFIG, arch="H200", context=self.context))

    def test_freeze_takes_one_instance(self):
        (instance,) = CONFIG["ops"] if isinstance(CONFIG, dict) else CONFIG
        config = [instance, {**instance, "name": "b", "heads": 4}]
        both, one = (hstujit.freeze(config, arch="H200", op=op, context=self.context)["choices"] for op in (None, "b"))
        self.assertEqual(len(both), 2 * len(one))
        with self.assertRaisesRegex(errors.NotFoundError, "it has: a, b"):
            hstujit.freeze(config, arch="H200", op="bb", context=self.context)

    def test_run_on_the_host(self):
        report = hstujit.run(CONFIG, backend="host", check=True, context=self.context)
        self.assertIn("a", json.dumps(report))

    def test_what_the_host_backend_lacks_has_an_error_of_its_own(self):
        libm = "libm.so.6"  # which is no host backend
        for file, words in ((str(self.folder / "none.so"), "was not found"), (libm, "has no function")):
            with mock.patch.dict(os.environ, HSTUJIT_HOST_LIBRARY=file):
                context = hstujit.Context(cache_dir=self.folder / "cache")
            with self.assertRaisesRegex(errors.NoHostBackendError, f"^the host backend .*{words}") as raised:
                hstujit.complete_cumsum(OFFSETS, context=context)
            self.assertIsInstance(raised.exception, errors.NoCompilerError)
            with self.assertRaises(errors.NoHostBackendError):
                hstujit.run(CONFIG, backend="host", context=context)
        with mock.patch.dict(os.environ, HSTUJIT_COMPILER_LIBRARY=str(self.folder / "none.so")):
            context = hstujit.Context(cache_dir=self.folder / "cache")
        with self.assertRaises(errors.NoCompilerError) as raised:
            hstujit.prewarm(CONFIG, arch="H200", context=context)
        self.assertNotIsInstance(raised.exception, errors.NoHostBackendError)

    def test_a_report_of_what_failed_comes_with_the_error(self):
        with self.assertRaises(errors.CacheMissError) as raised:
            hstujit.prewarm(CONFIG, arch="H200", check=True, context=self.context)
        self.assertIsInstance(raised.exception.report, dict)

    def test_prewarm_fills_a_cache_that_travels(self):
        seen = []
        try:
            hstujit.prewarm(CONFIG, arch="H200", context=self.context, progress=lambda *event: seen.append(event))
        except errors.NoCompilerError as error:
            self.skipTest(str(error))
        self.assertEqual(seen[-1][0], seen[-1][1])
        hstujit.prewarm(CONFIG, arch="H200", check=True, context=self.context)
        cache = hstujit.Cache(self.context)
        self.assertEqual(cache.path, self.folder / "cache")
        self.assertTrue(cache.list() and cache.verify())
        cache.export(self.folder / "bundle")
        other = hstujit.Context(cache_dir=self.folder / "other")
        hstujit.Cache(other).import_(self.folder / "bundle")
        hstujit.prewarm(CONFIG, arch="H200", check=True, context=other)
        for wrong in ({}, {"max_bytes": 1, "nvrtc": "13.0"}, {"max_bytes": -1}, {"nvrtc": "new"}):
            with self.assertRaises(errors.InvalidArgumentError):
                hstujit.Cache(other).prune(**wrong)
        version = hstujit.Cache(other).list()["kernels"][0]["nvrtc"]
        self.assertEqual(hstujit.Cache(other).prune(max_bytes=0)["kept"], 1)
        fresh = hstujit.Cache(hstujit.Context(cache_dir=self.folder / "other"))
        self.assertEqual(fresh.prune(nvrtc=version)["removed"], 1)
        with self.assertRaisesRegex(errors.InvalidArgumentError, '^nvrtc is "x"; allowed: a version of NVRTC'):
            fresh.prune(nvrtc="x")
        self.assertEqual(fresh.list()["kernels"], [])

    def test_what_progress_raises_is_raised(self):
        def stop(*event):
            raise KeyError("stop")

        try:
            with self.assertRaisesRegex(KeyError, "stop"):
                hstujit.prewarm(CONFIG, arch="H200", context=self.context, progress=stop)
        except errors.NoCompilerError as error:
            self.skipTest(str(error))

    def test_what_progress_raises_comes_before_an_error_of_the_library(self):
        def stop(*event):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            hstujit.prewarm(CONFIG, arch="H200", check=True, context=self.context, progress=stop)

    def test_a_thread_of_its_own_may_give_a_command(self):
        """There is no signal for it to wait for, and its progress is its own."""
        seen = []

        def work(stop):
            def progress(*event):
                seen.append(threading.current_thread())
                if stop:
                    raise KeyError("stop")

            try:
                hstujit.prewarm(CONFIG, arch="H200", check=True, context=self.context, progress=progress)
            except (KeyError, errors.CacheMissError) as error:
                seen.append(type(error))

        for stop, expected in ((False, errors.CacheMissError), (True, KeyError)):
            thread = threading.Thread(target=work, args=(stop,))
            thread.start()
            thread.join()
            self.assertEqual(seen, [thread, expected])
            seen.clear()

    def test_tune_without_a_gpu_says_what_is_missing(self):
        with mock.patch.dict(os.environ, HSTUJIT_CUDA_DRIVER=str(self.folder / "none.so")):
            context = hstujit.Context(cache_dir=self.folder / "cache")
        with self.assertRaisesRegex(errors.NoDriverError, "the CUDA driver .* was not found"):
            hstujit.tune(CONFIG, context=context)


class Program(unittest.TestCase):
    def test_python_m_hstujit_is_the_program(self):
        run = subprocess.run([sys.executable, "-m", "hstujit", "--version"], capture_output=True, text=True, check=True)
        self.assertIn(hstujit.__version__, run.stdout)
        run = subprocess.run([sys.executable, "-m", "hstujit", "nothing"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 2)

    def test_without_pytorch_its_module_says_what_is_missing(self):
        code = "import sys; sys.modules['torch'] = None; import hstujit.torch"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertIn("hstujit.torch needs PyTorch 2.10 or newer", run.stderr)

    @staticmethod
    def copied(package):
        """Copies the package without what an installation has inside."""
        own = hstujit._library.PACKAGE
        shutil.copytree(own, package, ignore=shutil.ignore_patterns("lib", "bin", "libexec", "share"))

    def test_an_editable_installation_names_the_build_whose_libraries_it_uses(self):
        found = hstujit._library
        with tempfile.TemporaryDirectory() as folder:
            self.copied(pathlib.Path(folder, "hstujit"))
            prefix = pathlib.Path(folder, "a build")
            pathlib.Path(folder, "hstujit", "editable.prefix").write_text(f"{prefix}\n")
            (prefix / "lib").mkdir(parents=True)
            (prefix / "lib" / found.SONAME).symlink_to(found.path())
            variables = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
            variables["PYTHONPATH"] = folder
            command = [sys.executable, "-c", "import hstujit; print(hstujit._library.path())"]
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout, f"{found.path()}\n", done.stderr)
            (prefix / "lib" / found.SONAME).unlink()
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        self.assertIn(f"hstujit found no {found.SONAME}: not in {prefix / 'lib'}, and the loader says", done.stderr)

    def test_libraries_of_another_build_are_named(self):
        """Of the same ABI version: the one that is there does not have what the package calls."""
        found = hstujit._library
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "hstujit")
            self.copied(package)
            pathlib.Path(folder, found.SONAME).symlink_to(found.path().parent / "libhstujit_compiler.so")
            variables = {**os.environ, "LD_LIBRARY_PATH": folder, "PYTHONPATH": folder}
            command = [sys.executable, "-c", "import hstujit"]
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        self.assertEqual(
            done.stderr.splitlines()[-1],
            f"ImportError: {found.SONAME} has no function hstujit_abi_version: it is of another build than {package}",
        )
        with self.assertRaisesRegex(ImportError, "has no function hstujit_newer: "):
            found.function_of(found.library, "hstujit_newer")

    def test_import_needs_neither_torch_nor_numpy(self):
        code = "import sys, hstujit; hstujit.attention; print([m for m in ('torch', 'numpy') if m in sys.modules])"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout.strip(), "[]")
