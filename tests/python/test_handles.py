"""Handles of the library: who destroys them, and what the library calls while the interpreter ends."""

import copy
import ctypes
import gc
import http.server
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import hstujit
from hstujit import errors
from hstujit._calls import Call, Given
from hstujit._interface import interface
from hstujit._library import Owner
from hstujit._structs import DLDataType, DLTensor

CONFIG = [{"name": "a", "op": "silu", "width": 512, "rows": 30}]


def integers(count):
    lengths = DLTensor(ndim=1, dtype=DLDataType(0, 64, 1), shape=(ctypes.c_int64 * 1)(count))
    return Given({"lengths": lengths}, {}, {}, {})


class Owners(unittest.TestCase):
    def test_none_is_copied_or_pickled(self):
        context = hstujit.Context()
        call = Call(context, interface("complete_cumsum", "forward"), "host", integers(3))
        made = [context, hstujit.Config(CONFIG), hstujit.Op({"op": "silu", "width": 8}), call]
        self.assertEqual({type(owner) for owner in made}, set(Owner.__subclasses__()))
        for owner in made:
            for copied in (copy.copy, copy.deepcopy, pickle.dumps, lambda owner: copy.deepcopy([owner])):
                words = f"^a hstujit.{type(owner).__name__} has a handle of the library: it is neither copied nor "
                with self.assertRaisesRegex(TypeError, words) as raised:
                    copied(owner)
                self.assertIsInstance(raised.exception, errors.Error)

    def test_a_copy_of_a_cache_is_of_the_same_context(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = hstujit.Cache(hstujit.Context(cache_dir=folder))
            other = copy.copy(cache)
            del cache
            gc.collect()
            self.assertEqual(other.path, pathlib.Path(folder))
            with self.assertRaises(errors.NotCopyableError):
                copy.deepcopy(other)

    def test_one_without_a_handle_says_so(self):
        with self.assertRaisesRegex(errors.InvalidArgumentError, "op is a null pointer; it must be a handle of "):
            hstujit.Op.__new__(hstujit.Op).signature  # noqa: B018


class SlowCache(http.server.BaseHTTPRequestHandler):
    """Has nothing, and takes a second for what is put into it."""

    def do_GET(self):
        self.answer(404)

    def do_PUT(self):
        time.sleep(1)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Exit(unittest.TestCase):
    def ended(self, code, **variables):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "HSTUJIT_CACHE_DIR": folder, **variables}
            command = [sys.executable, "-c", f"import hstujit, threading, time\nCONFIG = {CONFIG}\n{code}"]
            run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def of_a_thread(self, call):
        """The interpreter ends while a thread is in a callback, and would go on to others."""
        self.ended(f"""
slowly = lambda *_: time.sleep(0.02)
context = hstujit.Context(log=slowly)
def work():
    while True:
        try:
            {call}
        except hstujit.Error:
            pass
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""")

    def test_a_thread_that_logs(self):
        self.of_a_thread('hstujit.prewarm(CONFIG, arch="H200", check=True, context=context)')

    def test_a_thread_that_reports_its_progress(self):
        self.of_a_thread('hstujit.prewarm(CONFIG, arch="H200", check=True, progress=slowly)')

    def test_uploads_that_go_on(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowCache) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            printed = self.ended(
                """
hstujit.set_default_context(hstujit.Context(log=lambda *_: None))
try:
    print(hstujit.prewarm(CONFIG, arch="H200")["compiled"])
except hstujit.errors.NoCompilerError as error:
    print("skipped", error)
""",
                HSTUJIT_REMOTE_CACHE=f"http://127.0.0.1:{server.server_address[1]}",
            )
        if printed.startswith("skipped"):
            self.skipTest(printed)
        self.assertEqual(printed, "1\n")
