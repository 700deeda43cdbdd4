"""Configs: which operator instances a model calls (docs/config.md)."""

from __future__ import annotations

import ctypes
import json
import math
import numbers
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._checked import checked, named
from ._handles import Owner
from ._library import check, encode, json_of, library
from ._words import cut, shown
from .errors import Error, InvalidArgumentError, InvalidConfigError

_ORIGIN = "config"  # of a config that is no file


class Config(Owner, destroy=library.hstujit_config_destroy):
    """A parsed config. ``Config(source)`` takes a path, the config itself as a dict, or a list of its instances.

    Raises:
        hstujit.errors.InvalidConfigError: one line for each mistake, with file, line and column where it is a file or a
            text.
        hstujit.errors.NotFoundError: there is no such file.
        hstujit.errors.Error: the file cannot be read.
    """

    @named
    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        self._handle = ctypes.c_void_p()
        if isinstance(source, (str, bytes, os.PathLike)):
            try:
                check(library.hstujit_config_load(encode(source), ctypes.byref(self._handle)))
            except Error as error:
                if isinstance(source, str) and source.lstrip().startswith(("{", "[")):
                    error.args = (f"{error}; a config that is a text is Config.parse(text)",)
                raise
            return
        if not isinstance(source, (Mapping, Sequence)):
            raise InvalidArgumentError(f"config is {shown(source)}; it must be a path, a dict, or a list of instances")
        try:
            check(
                library.hstujit_config_parse(
                    json_text(source, "config", InvalidConfigError), _ORIGIN.encode(), ctypes.byref(self._handle)
                )
            )
        except InvalidConfigError as error:
            raise InvalidConfigError(_without_places(str(error))) from None

    @classmethod
    @checked
    def parse(cls, text: str, origin: str = _ORIGIN) -> Config:
        """The config of this JSON text. ``origin`` stands for the file in messages."""
        return cls._of(library.hstujit_config_parse, encode(text), encode(origin))

    @classmethod
    @checked
    def recording(cls, path: str | os.PathLike[str]) -> Config:
        """What a file of ``HSTUJIT_RECORD`` lists. Only :func:`hstujit.tune` takes it."""
        return cls._of(library.hstujit_config_load_recording, encode(path))

    @classmethod
    def _of(cls, function: Any, *arguments: Any) -> Config:
        config = cls.__new__(cls)
        config._handle = ctypes.c_void_p()
        check(function(*arguments, ctypes.byref(config._handle)))
        return config

    def describe(self) -> dict[str, Any]:
        """The device, the tuning options, and each instance with its parameters and lengths."""
        return json_of(library.hstujit_config_describe, self._handle)


def json_text(value: Any, what: str, wrong: type[Error]) -> bytes:
    """What is not JSON raises ``wrong`` with its place in it, and ``what`` for the whole."""
    try:
        return json.dumps(_json_value(value, "", what, wrong)).encode()
    except RecursionError:
        raise wrong(f"{what} is nested too deeply") from None


def _json_value(value: Any, place: str, what: str, wrong: type[Error]) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise wrong(f"{cut(place or what)} has the name {shown(key)}; a name must be a text")
        return {key: _json_value(item, f"{place}.{key}" if place else key, what, wrong) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item, f"{place}[{i}]", what, wrong) for i, item in enumerate(value)]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):  # numpy's, too
        if not -(2**63) <= int(value) < 2**64:
            raise wrong(f"{cut(place or what)} is {shown(int(value))}; it must be an integer of 64 bits")
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    allowed = "a finite number, a text, True, False, None, a list or a dict"
    raise wrong(f"{cut(place or what)} is {shown(value)}{_dtype_meant(value)}; it must be {allowed}")


_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "int32": "int32", "int64": "int64"}


def _dtype_meant(value: Any) -> str:
    """Of a data type of a framework: ``torch.bfloat16``, ``numpy.float16`` or an instance of ``numpy.dtype``."""
    found = re.fullmatch(rf"(?:<class '|dtype\('|)(?:\w+\.)*({'|'.join(_DTYPES)})(?:'>|'\)|)", shown(value))
    return f", did you mean {shown(_DTYPES[found[1]])}?" if found else ""


def _without_places(sentences: str) -> str:
    """Of the text that stands for a dict nobody has seen a line."""
    return re.sub(rf"^{_ORIGIN}:(\d+:\d+:)? ", "", sentences, flags=re.M)


def config_schema() -> dict[str, Any]:
    """The JSON Schema of configs."""
    return json_of(library.hstujit_config_schema)


__all__ = ["Config", "config_schema"]
