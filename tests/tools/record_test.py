#!/usr/bin/env python3
"""What bench/record.py takes from a report of hstujit doctor."""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCTOR = {"library": {"version": "1.2.3", "generator": "ab"}, "driver": {"ok": True, "version": 13000},
          "nvrtc": {"ok": True, "version": "13.0"}, "devices": [{"name": "GPU"}]}

with tempfile.TemporaryDirectory() as folder:
    lines = pathlib.Path(folder, "lines")
    lines.write_text('{"first_call_ms": 1.0, "launch_us": 2.0}\n', encoding="utf-8")
    output = pathlib.Path(folder, "out.json")
    subprocess.run([sys.executable, ROOT / "bench/record.py", "--commit", "c", "--date", "d", "--device", json.dumps(DOCTOR),
                    "startup", lines, lines, output], check=True, stdout=subprocess.DEVNULL)
    environment = json.loads(output.read_text(encoding="utf-8"))["environment"]

expected = {"date": "d", "commit": "c", "devices": [{"name": "GPU"}], "driver": 13000, "nvrtc": "13.0", "library": "1.2.3"}
if environment != expected:
    sys.exit(f"environment is {environment}; expected {expected}")
