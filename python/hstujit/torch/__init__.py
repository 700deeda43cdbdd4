"""The operators for PyTorch: ``torch.ops.hstujit.*``.

Importing this registers every operator of the library, with autograd, fake implementations for ``torch.compile`` and
``torch.export``, and autocast. Tensors of a GPU get kernels that are compiled for them, tensors of the CPU are computed
by the host backend.
"""

from __future__ import annotations

from . import _register

_register.register_all()
