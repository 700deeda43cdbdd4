"""Processes for what may end them: some public kernels access memory that is not theirs, after which CUDA does nothing more there."""

import json
import subprocess


def printed_by(command, given, timeout):
    """The lines of JSON objects that a process prints, whose standard input is `given`, and why it ended before its time, or ""."""
    try:
        ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=timeout, check=False)
        out, error = ended.stdout, (ended.stderr.strip() or f"exit status {ended.returncode}") if ended.returncode else ""
    except subprocess.TimeoutExpired as expired:
        out, error = (expired.stdout or b"").decode(), f"it took longer than {timeout} s"
    lines = error.splitlines()
    said = next((line for line in reversed(lines) if "Error: " in line), lines[-1] if lines else "")  # advice may follow it
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], said[:300]
