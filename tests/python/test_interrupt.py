"""Ctrl-C ends prewarm and tune within a second. HSTUJIT_FAKE_COMPILER and HSTUJIT_FAKE_CUDA name the compiler library
and the driver of the tests (tests/fakes), whose compiles take as long as a test wants.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import hstujit

COMPILER, DRIVER = os.environ.get("HSTUJIT_FAKE_COMPILER"), os.environ.get("HSTUJIT_FAKE_CUDA")
SECOND = 1.0
# The start of a process may take its time, the answer to the signal may not.
LIMIT_S = 60

CODE = """
import os, pathlib, signal, time
import hstujit

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it

def children():
    threads = pathlib.Path("/proc/self/task").iterdir()
    return [child for thread in threads for child in thread.joinpath("children").read_text().split()]

config = [{"name": f"silu_{width}", "op": "silu", "width": width, "rows": 1 << 16} for width in range(8, 72, 8)]
def progress(*event):
    pass
begin = hstujit._interrupt.interruptible
def announced(work, *rest):
    def begun(*arguments):
        print("begins", flush=True)
        return work(*arguments)
    return begin(begun, *rest)
hstujit.commands.interruptible = announced
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", flush=True)
    end = time.monotonic() + 2
    while children() and time.monotonic() < end:
        time.sleep(0.02)
    print(f"children {len(children())}", flush=True)
"""


@unittest.skipUnless(COMPILER and DRIVER, "HSTUJIT_FAKE_COMPILER or HSTUJIT_FAKE_CUDA names no library")
class Interrupted(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.cache = pathlib.Path(scratch.name)

    def interrupt(self, call, action):
        """Sends SIGINT to the process in the midst of the call. The seconds that its exception took."""
        generator = hstujit.Context(cache_dir=self.cache).doctor()["library"]["generator"]
        environment = {
            **os.environ,
            "HSTUJIT_CACHE_DIR": str(self.cache),
            "HSTUJIT_COMPILER_LIBRARY": COMPILER,
            "HSTUJIT_CUDA_DRIVER": DRIVER,
            "FAKE_COMPILER_GENERATOR": generator,
            "FAKE_COMPILER_SCRIPT": f'{{"*": "{action}"}}',
        }
        command = [sys.executable, "-c", CODE.replace("CALL", call)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                self.assertEqual(process.stdout.readline(), "begins\n", process.poll())
                time.sleep(1)  # a compile is under way then
                start = time.monotonic()
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.stdout.readline(), "interrupted\n")
                took = time.monotonic() - start
                self.assertEqual(process.stdout.readline(), "children 0\n")
                process.wait(LIMIT_S)
                self.assertEqual((process.returncode, process.stderr.read()), (0, ""))
            finally:
                process.kill()
        return took

    def test_prewarm(self):
        for progress in ("", ", progress=progress"):
            with self.subTest(progress):
                took = self.interrupt(f'hstujit.prewarm(config, arch="H200", jobs=1{progress})', "slow")
                self.assertLess(took, SECOND)
                cache = hstujit.Cache(hstujit.Context(cache_dir=self.cache))
                self.assertEqual(cache.verify()["bad"], [])
                self.assertLess(len(cache.list()["kernels"]), 4, "each process compiles one kernel, or two")

    def test_tune(self):
        for progress in ("", ", progress=progress"):
            with self.subTest(progress):
                self.assertLess(self.interrupt(f"hstujit.tune(config{progress})", "hang"), SECOND)
                cache = hstujit.Cache(hstujit.Context(cache_dir=self.cache))
                self.assertEqual(cache.verify()["bad"], [])


class Raised(unittest.TestCase):
    def test_what_progress_raises_ends_the_work(self):
        calls = []

        def stop(*event):
            calls.append(event)
            raise KeyError("stop")

        config = [{"name": f"silu_{width}", "op": "silu", "width": width, "rows": 3} for width in range(8, 72, 8)]
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(KeyError, "stop"):
            context = hstujit.Context(cache_dir=folder)
            hstujit.prewarm(config, arch="H200", check=True, context=context, progress=stop)
        self.assertEqual(len(calls), 1)


if __name__ == "__main__":
    unittest.main()
