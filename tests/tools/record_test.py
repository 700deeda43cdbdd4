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

# A step under an override: instances that it does not fit are named and are no failure; a wrong one is.
RIGHT = {"name": "causal-bf16-64x64", "error": 0.1, "bound": 1.0, "agrees": True}
REFUSED = {"name": "none-bf16-32x32", "failure": {"code": "unsupported", "message": "products in turns need two consumers"}}
WRONG = {"name": "none-bf16-64x64", "error": 2.0, "bound": 1.0, "agrees": False}
BROKEN = {"name": "none-bf16-96x96", "failure": {"code": "driver_error", "message": "a launch failed"}}
CLEAN = "  causal-bf16-64x64  agrees\n========= ERROR SUMMARY: 0 errors\n"
RACE = "  causal-bf16-64x64  agrees\n========= RACECHECK SUMMARY: 2 hazards displayed\n"


def ping_pong(runs, racecheck):
    with tempfile.TemporaryDirectory() as folder:
        report, mem, race, output = (pathlib.Path(folder, name) for name in ("report", "mem", "race", "out.json"))
        report.write_text(json.dumps({"runs": runs}), encoding="utf-8")
        mem.write_text(CLEAN, encoding="utf-8")
        race.write_text(racecheck, encoding="utf-8")
        process = subprocess.run([sys.executable, ROOT / "bench/record.py", "--commit", "c", "--date", "d", "--device",
                                  json.dumps(DOCTOR), "ping_pong", report, mem, race, output],
                                 check=False, stdout=subprocess.PIPE, text=True)
        return process.returncode, process.stdout, json.loads(output.read_text(encoding="utf-8"))["result"]


code, said, result = ping_pong([RIGHT, REFUSED], CLEAN)
if code != 0 or "refused: products in turns need two consumers" not in said or result["instances"] != 1 \
        or result["refused"] != ["none-bf16-32x32"]:
    sys.exit(f"a refused instance: exit {code}, {said!r}, {result}")
for runs, racecheck in (([RIGHT, WRONG], CLEAN), ([RIGHT, BROKEN], CLEAN), ([REFUSED], CLEAN), ([RIGHT], RACE)):
    code, said, result = ping_pong(runs, racecheck)
    if code != 1:
        sys.exit(f"exit {code} for {runs} and {racecheck!r}: {said!r}")
