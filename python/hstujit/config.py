"""Configs: which operator instances a model calls (docs/config.md)."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from typing import Any

from ._library import check, encode, json_of, library


class Config:
    """A parsed config. ``Config(source)`` takes a path, or the config itself as a dict.

    Raises:
        hstujit.errors.InvalidConfigError: one line for each mistake, with file, line and column.
        hstujit.errors.NotFoundError: there is no such file.
        hstujit.errors.Error: the file cannot be read.
    """

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        self._handle = ctypes.c_void_p()
        if isinstance(source, Mapping):
            text = json.dumps(source, indent=2).encode()
            check(library.hstujit_config_parse(text, b"config", ctypes.byref(self._handle)))
        else:
            check(library.hstujit_config_load(encode(source), ctypes.byref(self._handle)))

    @classmethod
    def parse(cls, text: str, origin: str = "config") -> Config:
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


def config_schema() -> dict[str, Any]:
    """The JSON Schema of configs."""
    return json_of(library.hstujit_config_schema)


__all__ = ["Config", "config_schema"]
