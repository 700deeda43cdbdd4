"""The digest of this build, which caches of torch.compile get to know.

torch.compile keeps graphs on disk, forward and backward, by what it traced. A graph that contains operators of this
package also depends on their derivatives, their fake implementations and their kernels, of which PyTorch sees nothing.
"""

from __future__ import annotations

import functools
import hashlib

import torch

from .. import _library
from ._native import FILE


@functools.cache
def digest() -> str:
    """Hashes the package's sources and the libraries that it calls."""
    files = [*sorted(_library.PACKAGE.rglob("*.py")), _library.path(), _library.path().parent / FILE]
    hashed = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        hashed.update(f"{file.name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def tag_caches() -> None:
    """Appends the digest to ``torch.compiler.config.cache_key_tag``, unless it is there.

    Each trace of an operator calls this, too, because a model may have set another tag since the import.
    """
    config = torch.compiler.config
    own = f"hstujit-{digest()}"
    if own not in config.cache_key_tag:
        config.cache_key_tag = f"{config.cache_key_tag} {own}".lstrip()
