"""Configs: which operator instances a model calls (docs/config.md)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import _structs
from ._library import Owner, created, json_of, library
from ._structs import as_integer, as_real
from ._words import check_type, shown
from .errors import Error, InvalidConfigError

_ORIGIN = "config"  # of a config that is no file


class Config(Owner, destroy=library.hstujit_config_destroy):
    """A parsed config. ``Config(source)`` takes a path, the config itself as a dict, or a list of its instances.

    Raises:
        hstujit.errors.InvalidConfigError: one line for each mistake, with file, line and column where it is a file or a
            text.
        hstujit.errors.NotFoundError: there is no such file.
        hstujit.errors.Error: the file cannot be read.
    """

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        if isinstance(source, (str, bytes, os.PathLike)):
            try:
                self._handle = created(library.hstujit_config_load, _structs.encode(source))
            except Error as error:
                if isinstance(source, str) and source.lstrip().startswith(("{", "[")):
                    error.args = (f"{error}; a config that is a text is Config.parse(text)",)
                raise
            return
        check_type("config", source, (Mapping, Sequence), "a path, a dict, or a list of instances")
        text = json_text(source, "config", InvalidConfigError)
        try:
            self._handle = created(library.hstujit_config_parse, text, _ORIGIN.encode())
        except InvalidConfigError as error:
            # Nobody has seen a line of the text that stands for a dict.
            error.args = (re.sub(rf"^{_ORIGIN}:(\d+:\d+:)? ", "", str(error), flags=re.M),)
            raise

    @classmethod
    def parse(cls, text: str, origin: str = _ORIGIN) -> Config:
        """The config of this JSON text. ``origin`` stands for the file in messages."""
        return cls._of(library.hstujit_config_parse, _structs.encode(text), _structs.encode(origin))

    @classmethod
    def recording(cls, path: str | os.PathLike[str]) -> Config:
        """What a file of ``HSTUJIT_RECORD`` lists. Only :func:`hstujit.tune` takes it."""
        return cls._of(library.hstujit_config_load_recording, _structs.encode(path))

    @classmethod
    def _of(cls, function: Any, *arguments: Any) -> Config:
        config = cls.__new__(cls)
        config._handle = created(function, *arguments)
        return config

    def describe(self) -> dict[str, Any]:
        """The device, the tuning options, and each instance with its parameters and lengths."""
        return json_of(library.hstujit_config_describe, self._handle)


def json_text(value: Any, what: str, wrong: type[Error]) -> bytes:
    """JSON of a value that may have numbers of numpy. What is not JSON raises ``wrong``."""
    try:
        return json.dumps(value, default=_json_number, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise wrong(f"{what} cannot be written as JSON: {error}") from None


def _json_number(value: Any) -> Any:
    for convert in (as_integer, as_real):
        if (number := convert(value)) is not None:
            return number
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{shown(value)} is none of a number, a text, True, False, None, a list and a dict")


def config_schema() -> dict[str, Any]:
    """The JSON Schema of configs."""
    return json_of(library.hstujit_config_schema)


__all__ = ["Config", "config_schema"]
