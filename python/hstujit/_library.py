"""Loads libhstujit and turns its statuses into exceptions.

The library is the one of this package, in an editable installation the one of the build, else one that the loader finds
(``LD_LIBRARY_PATH``, an installation). A call through ctypes releases the GIL.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from . import _structs, errors

SONAME = f"libhstujit.so.{_structs.ABI_VERSION}"
PACKAGE = pathlib.Path(__file__).parent


def _prefix() -> pathlib.Path:
    """The folder that has lib, bin, libexec and share: the package of a wheel, the build of an editable installation.

    The latter is a folder of this package besides that of the sources, and its editable.prefix names the build.
    """
    for folder in sys.modules[__package__].__path__:
        file = pathlib.Path(folder, "editable.prefix")
        if file.exists():
            return pathlib.Path(file.read_text(encoding="utf-8").rstrip("\n"))
    return PACKAGE


PREFIX = _prefix()

_HANDLE, _TEXT, _STRING = ctypes.c_void_p, ctypes.POINTER(_structs.Text), ctypes.c_char_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_OPTIONS = ctypes.POINTER(_structs.RunOptions)

# Arguments of each function, which returns a hstujit_status but where _RESULTS says what else.
_FUNCTIONS: dict[str, list[Any]] = {
    **dict.fromkeys(("operators", "config_schema"), [_TEXT]),
    **dict.fromkeys(("doctor", "config_describe", "op_signature", "call_describe"), [_HANDLE, _TEXT]),
    **dict.fromkeys(("cache_list", "cache_verify", "cache_path"), [_HANDLE, _TEXT]),
    **dict.fromkeys(("config_load", "config_load_recording"), [_STRING, _OUT]),
    **dict.fromkeys(("prewarm", "tune", "run", "bench"), [_HANDLE, _HANDLE, _OPTIONS, _TEXT]),
    **dict.fromkeys(("emit", "freeze", "explain", "check"), [_HANDLE, _HANDLE, _OPTIONS, _TEXT]),
    "stats": [_HANDLE, _STRING, _TEXT],
    "context_create": [ctypes.POINTER(_structs.ContextOptions), _OUT],
    "config_parse": [_STRING, _STRING, _OUT],
    "op_from_config": [_HANDLE, _HANDLE, _STRING, ctypes.c_int, ctypes.c_int, _OUT],
    "op_create_with": [_HANDLE, _STRING, ctypes.POINTER(_structs.OpOptions), _OUT],
    "call_create": [_HANDLE, _STRING, ctypes.POINTER(_structs.OpOptions), ctypes.c_void_p, ctypes.c_size_t, _OUT],
    "call_output_sizes": [_HANDLE, *[ctypes.c_void_p, ctypes.c_size_t] * 3],
    "call_check": [_HANDLE, ctypes.c_void_p, ctypes.c_size_t],
    "call_op": [_HANDLE, ctypes.c_void_p, ctypes.c_size_t, _OUT],
    "last_error_fields": [ctypes.POINTER(_structs.ErrorFields)],
    "suggest": [_STRING, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, _TEXT],
    "prepare": [_HANDLE, ctypes.POINTER(_structs.Problem)],
    "workspace_size": [_HANDLE, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)],
    "launch": [_HANDLE, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cache_prune": [_HANDLE, ctypes.c_uint64, _TEXT],
    "cache_prune_nvrtc": [_HANDLE, _STRING, _TEXT],
    "cache_export": [_HANDLE, _STRING, ctypes.POINTER(_structs.CacheExportOptions), _TEXT],
    "cache_import": [_HANDLE, _STRING, _TEXT],
    **dict.fromkeys(("abi_version", "version", "last_error", "callbacks_stop"), []),
    "text_free": [_TEXT],
    **dict.fromkeys(("context_destroy", "config_destroy", "op_destroy", "call_destroy"), [_HANDLE]),
}
_RESULTS: dict[str, Any] = {"version": _STRING, "last_error": _STRING, "text_free": None, "callbacks_stop": None}


def _load() -> ctypes.CDLL:
    own = PREFIX / "lib" / SONAME
    try:
        library = ctypes.CDLL(str(own) if own.exists() else SONAME)
    except OSError as error:
        raise ImportError(
            f"hstujit found no {SONAME}: not in {own.parent}, and the loader says: {error}. "
            "Install the wheel, or add the folder of an installation's libraries to LD_LIBRARY_PATH"
        ) from None
    version = function_of(library, "hstujit_abi_version")
    if version() != _structs.ABI_VERSION:
        raise ImportError(
            f"{_file_of(version)} has the ABI version {version()}; this package needs {_structs.ABI_VERSION}"
        )
    for name, arguments in _FUNCTIONS.items():
        function = function_of(library, "hstujit_" + name)
        function.restype = _RESULTS.get(name, None if name.endswith("_destroy") else ctypes.c_int)
        function.argtypes = arguments
    return library


def function_of(library: ctypes.CDLL, name: str) -> Any:
    try:
        return getattr(library, name)
    except AttributeError:  # builds of one ABI version may have more functions than those before them
        raise ImportError(f"{library._name} has no function {name}: it is of another build than {PACKAGE}") from None


def _file_of(function: Any) -> pathlib.Path:
    class DlInfo(ctypes.Structure):
        _fields_ = [("name", _STRING), ("base", _HANDLE), ("symbol", _STRING), ("address", _HANDLE)]

    info = DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [_HANDLE, ctypes.POINTER(DlInfo)]
    dladdr(ctypes.cast(function, _HANDLE), ctypes.byref(info))
    return pathlib.Path(os.fsdecode(info.name)).resolve()


def _is_main_interpreter() -> bool:
    current, main = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_Main
    current.restype = main.restype = _HANDLE
    return bool(current() == main())


library = _load()
# A thread of the library that called Python while the interpreter ends would end the process. Callbacks stop for the
# whole process, so the end of a sub-interpreter must not stop them.
if _is_main_interpreter():
    atexit.register(library.hstujit_callbacks_stop)


def path() -> pathlib.Path:
    """The file that the library was loaded from."""
    return _file_of(library.hstujit_version)


def error_of(status: int, sentence: str | None = None) -> errors.Error:
    """The exception of a status, with the sentence and the fields of this thread's last failure."""
    last = library.hstujit_last_error().decode(errors="replace")
    fields = _structs.ErrorFields()
    library.hstujit_last_error_fields(ctypes.byref(fields))
    is_last = sentence is None or sentence == last
    sentence = last if sentence is None else sentence
    if "libhstujit_host.so" in sentence:  # which no index of packages has
        wheel = "a second wheel of the same build: pip install build/wheel/hstujit_host-*.whl"
        component = "the component host of the same build: cmake --install build/release --strip --component host"
        sentence += f"; it is {wheel if (PREFIX / 'lib' / SONAME).exists() else component}"
    kind = errors.BY_STATUS.get(status, errors.Error)
    # So begins every sentence about it, behind the instance that it is of.
    if kind is errors.NoCompilerError and re.search("(^|: )the host backend ", sentence):
        kind = errors.NoHostBackendError
    error = kind(sentence)
    for name in ("argument", "value", "allowed", "hint") if is_last else ():
        setattr(error, name, getattr(fields, name).decode(errors="replace"))
    return error


def check(status: int) -> None:
    if status:
        raise error_of(status)


def created(function: Any, *arguments: Any) -> ctypes.c_void_p:
    """The handle that a function writes to its last argument."""
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    return handle


def take_text(text: _structs.Text) -> str:
    """The text, whose memory is given back."""
    try:
        return os.fsdecode(ctypes.string_at(text.data, text.size)) if text.data else ""  # a path may be no UTF-8
    finally:
        library.hstujit_text_free(ctypes.byref(text))


def text_of(function: Any, *arguments: Any) -> str:
    """The text that a function writes to its last argument."""
    text = _structs.Text()
    status = function(*arguments, ctypes.byref(text))
    if status:
        error = error_of(status)  # before anything else may fail on this thread
        report = take_text(text)
        if report:
            error.report = json.loads(report)
        raise error
    return take_text(text)


def json_of(function: Any, *arguments: Any) -> Any:
    return json.loads(text_of(function, *arguments))


def suggested(written: str, names: list[str]) -> list[str]:
    """The names that are meant by one that is not among them, by the table and the distance of the library."""
    array = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
    found: list[str] = json_of(library.hstujit_suggest, written.encode(errors="replace"), array, len(names))
    return found


class Owner:
    """Base of what has a handle. It destroys it, so there is no second one: it is neither copied nor pickled."""

    _destroy: ClassVar[Any]  # a function of the library
    _handle: Any = None

    def __init_subclass__(cls, destroy: Callable[[Any], None] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if destroy is not None:
            cls._destroy = destroy

    def __del__(self) -> None:
        if handle := self.__dict__.pop("_handle", None):
            self._destroy(handle)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise errors.NotCopyableError(
            f"a hstujit.{type(self).__name__} has a handle of the library: it is neither copied nor pickled; "
            "make another one from the same arguments"
        )
