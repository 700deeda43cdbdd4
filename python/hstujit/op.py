"""One operator instance and direction, ready to be launched: the C API's hstujit_op."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping
from typing import Any

from . import _structs
from ._arrays import CUDA, Tensor, device_of
from ._library import Owner, check, created, json_of, library
from ._words import check_type, cut, did_you_mean
from .config import Config, json_text
from .context import Context, context_of
from .errors import InvalidArgumentError
from .signature import Argument, Signature


class Op(Owner, destroy=library.hstujit_op_destroy):
    """An operator instance. Any thread may use it.

    Args:
        instance: ``{"op": "hstu_attention", "heads": 4, ...}``: the parameters of docs/parameters.md. An entry of a
            config's ops is one, too; its lengths and directions say nothing here.
        direction: ``"forward"`` or ``"backward"``.
        backend: ``"cuda"``, or ``"host"``, which computes on the CPU.
        context: the default one if None.
        deterministic: only kernels whose results have the same bits every time. False: the context's option says it.

    Raises:
        hstujit.errors.Error: a parameter that is not known or not allowed.
    """

    def __init__(
        self,
        instance: Mapping[str, Any],
        *,
        direction: str = "forward",
        backend: str = "cuda",
        context: Context | None = None,
        deterministic: bool = False,
    ) -> None:
        check_type("instance", instance, Mapping, "a dict of an operator's parameters")
        text = json_text(instance, "instance", InvalidArgumentError)
        handle, *where = self._where(context, direction, backend)
        options = _structs.OpOptions(direction=where[0], backend=where[1], deterministic=bool(deterministic))
        self._handle = created(library.hstujit_op_create_with, handle, text, ctypes.byref(options))

    @classmethod
    def from_config(
        cls,
        config: Config,
        name: str,
        *,
        direction: str = "forward",
        backend: str = "cuda",
        context: Context | None = None,
    ) -> Op:
        """The instance ``name`` of a config, whose ``tuning`` holds for it."""
        check_type("config", config, Config, "a hstujit.Config")
        op = cls.__new__(cls)
        handle, *where = op._where(context, direction, backend)
        op._handle = created(library.hstujit_op_from_config, handle, config._handle, _structs.encode(name), *where)
        return op

    def _where(self, context: Context | None, direction: str, backend: str) -> tuple[Any, int, int]:
        """Keeps where the op is made, as the library has it."""
        number = _structs.number_of
        where = number("direction", direction, _structs.DIRECTIONS), number("backend", backend, _structs.BACKENDS)
        self.direction, self.backend = direction, backend
        self._context = context_of(context)  # which must outlive it
        return self._context._handle, *where

    @functools.cached_property
    def signature(self) -> Signature:
        """The arguments of a launch, in launch order."""
        return Signature.of(json_of(library.hstujit_op_signature, self._handle))

    def prepare(self, max_seq_len: int | None = None, device: int = -1) -> None:
        """Makes the kernel for sequences of up to ``max_seq_len`` rows ready. May compile.

        Args:
            max_seq_len: at least that of the launches. None where launches take no ``max_seq_len``.
            device: a CUDA ordinal, or -1 for the current one.

        Not while a stream is being captured.
        """
        if max_seq_len is None:
            if self.signature.find("max_seq_len"):
                raise InvalidArgumentError(
                    "max_seq_len is None; launches of this op have one, and kernels are made for it"
                )
            max_seq_len = 1
        check(library.hstujit_prepare(self._handle, _structs.Problem(max_seq_len=max_seq_len, device=device)))

    def workspace_size(self, **arguments: Any) -> int:
        """Bytes of device memory that a launch of these arguments borrows, after :meth:`prepare`."""
        values, _ = self._values(arguments, None)
        return workspace_size(self._handle, values)

    def launch(self, *, stream: int = 0, workspace: Any = None, **arguments: Any) -> None:
        """Computes the outputs, which are arguments, too. On a GPU it only enqueues.

        Args:
            stream: address of the CUstream; the host backend takes none, and returns when it is done.
            workspace: an array of :meth:`workspace_size` bytes, at an address that is a multiple of 256.
            arguments: by the names of :attr:`signature`: arrays, integers and real numbers.

        Raises:
            hstujit.errors.NotPreparedError: there was no :meth:`prepare` for this ``max_seq_len`` and device.
            hstujit.errors.InvalidArgumentError: an argument that is missing, unknown, or not allowed.
        """
        stream = _structs.integer_of("stream", _structs.ADDRESS, stream)
        values, tensors = self._values(arguments, stream)
        name = "workspace"
        borrowed = None if workspace is None else Tensor(name, workspace, _dlpack_stream(name, workspace, stream))
        bytes_ = 0 if borrowed is None else math.prod(borrowed.shape) * borrowed.dl_tensor.dtype.bits // 8
        address = None if borrowed is None else borrowed.data
        check(library.hstujit_launch(self._handle, values, len(values), address, bytes_, stream))
        del tensors, borrowed  # until here nothing of them may be given back

    def _values(self, arguments: Mapping[str, Any], stream: int | None) -> tuple[Any, list[Tensor]]:
        """The values of a launch, and what must live during it."""
        signature = self.signature
        names = [argument.name for argument in signature]
        wrong = [
            f"{cut(name)} is not an argument{did_you_mean(name, names)}" for name in arguments if name not in names
        ]
        wrong += [f"{name} is missing" for name in names if arguments.get(name) is None]
        if wrong:
            raise InvalidArgumentError(f"{'; '.join(wrong)}; the arguments are {', '.join(names)}")
        tensors: list[Tensor] = []
        values = (_structs.Value * len(signature))()
        for value, argument in zip(values, signature):
            given = arguments[argument.name]
            if argument.is_tensor:
                tensor = given
                if not isinstance(tensor, Tensor):
                    tensor = Tensor(argument.name, given, _dlpack_stream(argument.name, given, stream))
                check_writable(argument, tensor)
                tensors.append(tensor)
                value.tensor = tensor.address
            else:
                set_number(value, argument.kind, number_of_kind(argument.name, argument.kind, given))
        return values, tensors


def workspace_size(op: ctypes.c_void_p, values: Any) -> int:
    size = ctypes.c_size_t()
    check(library.hstujit_workspace_size(op, values, len(values), ctypes.byref(size)))
    return size.value


def check_writable(argument: Argument, tensor: Tensor) -> None:
    if argument.is_output and tensor.read_only:
        raise InvalidArgumentError(f"{argument.name} is read-only; an output must be writable")


def number_of_kind(name: str, kind: str, given: Any) -> float | int:
    return _structs.real_of(name, given) if kind == "float" else _structs.integer_of(name, ctypes.c_int64, given)


def set_number(value: _structs.Value, kind: str, number: float | int) -> None:
    setattr(value, "real" if kind == "float" else "integer", number)


def _dlpack_stream(name: str, array: Any, stream: int | None) -> int | None:
    """As the DLPack protocol names the stream that the array is used on: 1 is the legacy default stream."""
    if stream is None or device_of(name, array)[0] != CUDA:
        return None
    return stream or 1


__all__ = ["Op"]
