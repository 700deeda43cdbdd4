"""Common parts of the package's tests: reference results, and data."""

import contextlib
import io
import sys
from unittest import mock

import numpy

import hstujit

OFFSETS = numpy.array([0, 3, 3, 8], dtype=numpy.int64)  # three sequences, one without rows
ROWS = int(OFFSETS[-1])


def run_main(function, *argv):
    """What a program's function exits with and prints, in this process: ``argv[0]`` is the program."""
    printed, code = io.StringIO(), 0
    given = mock.patch.object(sys, "argv", list(argv))
    with given, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            function()
        except SystemExit as end:
            code = end.code or 0
    return code, printed.getvalue()


def random(*shape, seed=0, dtype=numpy.float32):
    return numpy.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def attention(q, k, v, offsets, max_seq_len, alpha, num_targets=None):
    """Causal attention with silu in float64, as docs/ops-attention.md defines it."""
    out = numpy.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for b, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:])):
        n = end - begin
        ids = numpy.arange(n)
        if num_targets is not None:
            ids = numpy.minimum(ids, n - num_targets[b])
        valid = (ids[:, None] > ids[None, :]) | numpy.eye(n, dtype=bool)
        for head in range(q.shape[1]):
            rows = slice(begin, end)
            scores = alpha * q[rows, head].astype(float) @ k[rows, head].astype(float).T
            weights = numpy.where(valid, scores / (1 + numpy.exp(-scores)) / max_seq_len, 0)
            out[rows, head] = weights @ v[rows, head].astype(float)
    return out


def closeness(actual, expected):
    """Largest difference over the largest value."""
    expected = numpy.asarray(expected, dtype=float)
    return float(numpy.abs(numpy.asarray(actual, dtype=float) - expected).max() / max(numpy.abs(expected).max(), 1e-30))


def has_host_backend():
    try:
        hstujit.complete_cumsum(numpy.array([1], dtype=numpy.int64))
        return True
    except hstujit.Error:
        return False
