"""Configs: which operator instances a model calls (docs/config.md)."""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._library import check, encode, json_of, library
from .errors import InvalidConfigError

_ORIGIN = "config"  # of a config that is no file


class Config:
    """A parsed config. ``Config(source)`` takes a path, the config itself as a dict, or a list of its instances.

    Raises:
        hstujit.errors.InvalidConfigError: one line for each mistake, with file, line and column where it is a file or a
            text.
        hstujit.errors.NotFoundError: there is no such file.
        hstujit.errors.Error: the file cannot be read.
    """

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        self._handle = ctypes.c_void_p()
        if not isinstance(source, Mapping) and (isinstance(source, (str, bytes)) or not isinstance(source, Sequence)):
            check(library.hstujit_config_load(encode(source), ctypes.byref(self._handle)))
            return
        try:
            check(library.hstujit_config_parse(_text_of(source), _ORIGIN.encode(), ctypes.byref(self._handle)))
        except InvalidConfigError as error:
            raise InvalidConfigError(_without_places(str(error))) from None

    @classmethod
    def parse(cls, text: str, origin: str = _ORIGIN) -> Config:
        """The config of this JSON text. ``origin`` stands for the file in messages."""
        return cls._of(library.hstujit_config_parse, encode(text), encode(origin))

    @classmethod
    def recording(cls, path: str | os.PathLike[str]) -> Config:
        """What a file of ``HSTUJIT_RECORD`` lists. Only :func:`hstujit.tune` takes it."""
        return cls._of(library.hstujit_config_load_recording, encode(path))

    @classmethod
    def _of(cls, function: Any, *arguments: Any) -> Config:
        config = cls.__new__(cls)
        config._handle = ctypes.c_void_p()
        check(function(*arguments, ctypes.byref(config._handle)))
        return config

    def __del__(self) -> None:
        if handle := self.__dict__.pop("_handle", None):
            library.hstujit_config_destroy(handle)

    def describe(self) -> dict[str, Any]:
        """The device, the tuning options, and each instance with its parameters and lengths."""
        return json_of(library.hstujit_config_describe, self._handle)


def _text_of(source: Any) -> bytes:
    try:
        return json.dumps(source, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidConfigError(f"a config holds JSON values alone: {error}") from None


def _without_places(sentences: str) -> str:
    """Of the text that stands for a dict nobody has seen a line."""
    return re.sub(rf"^{_ORIGIN}:(\d+:\d+:)? ", "", sentences, flags=re.M)


def config_schema() -> dict[str, Any]:
    """The JSON Schema of configs."""
    return json_of(library.hstujit_config_schema)


__all__ = ["Config", "config_schema"]
