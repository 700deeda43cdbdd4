"""Every operator of the library as ``torch.ops.hstujit.*``.

All of it follows from the interface of each operator, as the functions for arrays do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._interface import Interface, interface, interfaces
from ._autocast import autocast_of
from ._autograd import Derivative, NoDerivative, autograd_kernel
from ._launch import Launcher
from ._schema import NAMESPACE, function_of, schema_of

library = torch.library.Library(NAMESPACE, "DEF")


def _operator(name: str) -> Any:
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _fake(launcher: Launcher) -> Callable[..., Any]:
    def body(inputs: Any, parameters: Any, rows: Any) -> Any:
        plan = launcher.plan(inputs, parameters)

        def read_rows(name: str) -> Any:
            return torch.library.get_ctx().new_dynamic_size()

        outputs = launcher.allocate(plan, inputs, rows, read_rows)
        return launcher.all_outputs(plan, outputs, inputs[launcher.first])

    return function_of(launcher.interface, body)


def _register(described: Interface) -> tuple[Launcher, Callable[..., Any]]:
    """The launcher and the kernel of an operator that has its schema, kernels, fake implementation and autocast."""
    launcher = Launcher(described)
    library.define(schema_of(described), tags=(torch.Tag.pt2_compliant_tag,))
    kernel = function_of(described, launcher.run)
    for key in ("CPU", "CUDA"):
        library.impl(described.name, kernel, key)
    torch.library.register_fake(f"{NAMESPACE}::{described.name}", _fake(launcher), lib=library)
    op = _operator(described.name)
    for key in ("AutocastCPU", "AutocastCUDA"):
        library.impl(described.name, autocast_of(described, op, key), key)
    return launcher, kernel


def _derivative_of(launcher: Launcher, backward: Launcher | None) -> Derivative | NoDerivative:
    name = launcher.interface.name
    if launcher.interface.direction == "backward":
        return NoDerivative(f"{name} has no derivative: second derivatives are not there")
    if backward is None:
        return NoDerivative(f"{name} has no derivative; call it in torch.no_grad()")
    return Derivative(launcher, backward)


def register_all() -> None:
    made = {name: _register(interface(*where)) for name, where in interfaces().items()}
    for name, (launcher, kernel) in made.items():
        backward, _ = made.get(launcher.interface.op + "_backward", (None, None))
        rule = _derivative_of(launcher, backward)
        library.impl(name, autograd_kernel(_operator(name), rule, kernel), "Autograd", with_keyset=True)
