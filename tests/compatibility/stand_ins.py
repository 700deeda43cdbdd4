"""Stand-ins for modules that the public packages import and their tests of operators do not need."""

import importlib
import importlib.machinery
import importlib.util
import pathlib
import sys
import types

import torch


class Empty(types.ModuleType):
    """A module in which every name is a class of its own: no argument is an instance of it."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def without_init(name: str, folder: pathlib.Path) -> None:
    """A package whose modules are found, and whose ``__init__``, which imports everything, does not run."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder / name)]
    sys.modules[name] = package


def add_absent(names: tuple[str, ...], package: str) -> list[str]:
    """Modules, and their parents, where they cannot be imported. Those of the package itself are always replaced."""
    added = []
    for name in names:
        own = name.startswith(package + ".")
        if not own and is_there(name):
            continue
        parts = name.split(".")
        for length in range(2 if own else 1, len(parts) + 1):
            module = ".".join(parts[:length])
            if module not in sys.modules and not (own and length < len(parts)):
                made = sys.modules[module] = Empty(module)
                made.__path__ = []
                made.__spec__ = importlib.machinery.ModuleSpec(module, None)
        added.append(name)
    return added


def _rows_of(offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each row of all sequences, its sequence and its position there."""
    lengths = offsets.diff()
    sequence = torch.repeat_interleave(torch.arange(lengths.numel(), device=offsets.device), lengths)
    return sequence, torch.arange(sequence.numel(), device=offsets.device) - offsets[sequence]


def complete_cumsum(lengths: torch.Tensor) -> torch.Tensor:
    return torch.cat([lengths.new_zeros(1), torch.cumsum(lengths, 0).to(lengths.dtype)])


def to_padded_dense(values, offsets, max_lengths, padding_value: float = 0.0):
    (offsets,), (longest,) = offsets, max_lengths
    sequence, row = _rows_of(offsets)
    fits = row < longest
    size = ((offsets.numel() - 1) * longest, *values.shape[1:])
    dense = torch.full(size, padding_value, dtype=values.dtype, device=values.device)
    places = (sequence * longest + row)[fits]
    dense = dense.index_put((places,), values[: sequence.numel()][fits])
    return dense.view(offsets.numel() - 1, longest, *values.shape[1:])


def to_jagged(dense, x_offsets, total_L=None):
    sequence, row = _rows_of(x_offsets[0])
    longest = dense.shape[1]
    values = dense.flatten(0, 1)[sequence * longest + row.clamp(max=max(longest - 1, 0))]
    return values * (row < longest).view(-1, *[1] * (values.dim() - 1)).to(values.dtype), x_offsets


def add_dense(x_values, x_offsets, y):
    return x_values + to_jagged(y, x_offsets)[0], x_offsets


_OPERATORS = (
    ("asynchronous_complete_cumsum", "(Tensor t_in) -> Tensor", complete_cumsum),
    (
        "jagged_to_padded_dense",
        "(Tensor values, Tensor[] offsets, int[] max_lengths, float padding_value=0) -> Tensor",
        to_padded_dense,
    ),
    ("dense_to_jagged", "(Tensor dense, Tensor[] x_offsets, int? total_L=None) -> (Tensor, Tensor[])", to_jagged),
    (
        "jagged_dense_elementwise_add_jagged_output",
        "(Tensor x_values, Tensor[] x_offsets, Tensor y) -> (Tensor, Tensor[])",
        add_dense,
    ),
)


def add_fbgemm() -> list[str]:
    """Operators of fbgemm_gpu in plain PyTorch, where it is not installed; the library must be kept."""
    if is_there("fbgemm_gpu"):
        importlib.import_module("fbgemm_gpu")
        return []
    library = torch.library.Library("fbgemm", "DEF")
    for name, schema, function in _OPERATORS:
        library.define(name + schema)
        library.impl(name, function, "CompositeImplicitAutograd")
    _libraries.append(library)
    return [f"torch.ops.fbgemm.{name}" for name, _, _ in _OPERATORS]


_libraries: list[torch.library.Library] = []
