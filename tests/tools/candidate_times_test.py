"""bench/candidate_times.py: a report of times that was packed is unpacked as it was, and the bytes are always the same."""
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "candidate_times.py"
ENVIRONMENT = {"date": "2026-01-02", "commit": "1234567", "driver": 13000, "nvrtc": "13.0", "library": "0.1.0"}
CONFIGS = [{"skeleton": "attention/sm90_forward", "block_m": 64, "schedule": "persistent", "pack_sequences": True},
           {"skeleton": "gemm/sm90", "block_m": 128, "warps": 4}]
FORWARD = {"name": "7", "direction": "forward", "max_seq_len": 200, "bucket": 256, "short_sequences": True}
BACKWARD = {"name": "7", "direction": "backward", "max_seq_len": 200, "bucket": 256}
REPORT = {"step": "candidate_times", "environment": ENVIRONMENT | {"devices": [{"name": "NVIDIA H200", "arch": "sm_90a"}]},
          "result": {"configs": CONFIGS, "keys": [FORWARD | {"us": {"0": 12.5, "1": 1e3}}, BACKWARD | {"us": {"1": 7.1}}]}}


class CandidateTimes(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.report = pathlib.Path(scratch.name) / "times_2026-01-02.json"
        self.packed = self.report.with_suffix(".csv.gz")

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def pack(self, report):
        self.report.write_text(json.dumps(report))
        return self.run_script("pack", self.report)

    def test_what_was_packed_is_unpacked(self):
        self.assertEqual(self.pack(REPORT).returncode, 0)
        unpacked = self.run_script("unpack", self.packed)
        expected = REPORT | {"environment": ENVIRONMENT | {"devices": [{"name": "NVIDIA H200"}]}}
        self.assertEqual(json.loads(unpacked.stdout), expected)
        first = self.packed.read_bytes()
        self.report.write_text(unpacked.stdout)
        self.run_script("pack", self.report)
        self.assertEqual(self.packed.read_bytes(), first)

    def test_mistakes_are_named(self):
        lacks = REPORT | {"result": {"configs": CONFIGS, "keys": [FORWARD | {"us": {}}]}}
        self.assertIn("7, forward, has no times", self.pack(lacks).stderr)
        for content, said in ((b"date\n", "cannot read"), (gzip.compress(b"date\n2026"), "has no column commit")):
            self.packed.write_bytes(content)
            unpacked = self.run_script("unpack", self.packed)
            self.assertEqual(unpacked.returncode, 2)
            self.assertIn(said, unpacked.stderr)


if __name__ == "__main__":
    unittest.main()
