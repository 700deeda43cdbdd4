"""The operators for PyTorch: ``torch.ops.hstujit.*``.

Importing this registers every operator of the library, with autograd, fake implementations for ``torch.compile`` and
``torch.export``, and autocast. Tensors of a GPU get kernels that are compiled for them, tensors of the CPU are computed
by the host backend.

The functions here have the names of those of the public HSTU packages, :mod:`hstujit.torch.generative_recommenders`
and :mod:`hstujit.torch.tzrec` also the argument orders and defaults of each, and :func:`patch` replaces a package's
operators in place. :mod:`hstujit.torch.recsys_examples` has the fused layer of NVIDIA's examples. :class:`STULayer` and
:class:`STUStack` are whole layers, with the parameter names of the public modules.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("hstujit.torch needs PyTorch 2.10 or newer: pip install torch", name=error.name) from None

from . import _register

_register.register_all()

from . import functional, functional_layer, generative_recommenders, recsys_examples, tzrec  # noqa: E402  its operators are there now
from ._attention import attention  # noqa: E402
from ._operands import head, pair, row, scalar, sequence, table  # noqa: E402
from ._patch import Calls, Patched, patch, unpatch  # noqa: E402
from .functional import *  # noqa: E402, F403
from .functional_layer import *  # noqa: E402, F403
from .stu import STULayer, STULayerConfig, STUStack  # noqa: E402

__all__ = [
    *functional.__all__, *functional_layer.__all__, "Calls", "Patched", "STULayer", "STULayerConfig", "STUStack",
    "attention", "generative_recommenders", "head", "pair", "patch", "recsys_examples", "row", "scalar", "sequence",
    "table", "tzrec", "unpatch",
]  # fmt: skip
