"""What an operator takes, found out by asking the library for the signature of many instances.

The library says the parameters of an operator, and the arguments of an instance. Which parameter brings which
argument, which follows from a shape, a data type or an address, and which only a caller can say, is seen by changing
one parameter at a time. So an operator that is added to the library has its functions here without a line of Python.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._interface import LARGEST_PLAIN, Interface, Parameter, Switch, operators
from ._library import library, text_of
from ._structs import DIRECTIONS
from ._words import either
from .errors import InvalidConfigError, UnsupportedError
from .signature import Argument, Signature

DATA_TYPES = ("bf16", "fp16", "fp32", "int32", "int64")
_SIZES = (6, 2, 3, 40, 56, 88, 104)  # tried for parameters that are numbers
_OF_STEPS = {"adds_gradients"}  # parameters of steps of programs: an instance may have them, and no call does
# Of sizes that follow from several parameters: their letters in docs/ops-layers.md, by an argument that has them.
_LETTERS = {"uvqk_weight": "P", "output_weight": "Y"}


@functools.cache
def interface(op: str, direction: str) -> Interface:
    return _Search(op, direction, operators()[op]["parameters"]).result()


class _Search:
    """Changes one parameter at a time and compares signatures."""

    def __init__(self, op: str, direction: str, schema: Mapping[str, Any]) -> None:
        self.op, self.direction = op, direction
        properties: dict[str, dict[str, Any]] = schema["properties"]
        self.properties = {name: value for name, value in properties.items() if name not in _OF_STEPS}
        self.required: list[str] = schema["required"]
        self.seen: list[Signature] = []  # of every instance that there is
        self.parsed: dict[str, Signature] = {}  # by text: many instances have the same one
        self.base: dict[str, int] = {}  # parameters of the instance that others are compared with
        self.size_values: dict[str, int] = {}
        sizes = [40, 56, 88, 104, 136, *_SIZES]
        for name in self.required:
            self.base[name] = next(size for size in sizes if _allows(self.properties[name], size))
            sizes.remove(self.base[name])
        self.variants: dict[str, list[tuple[Any, Signature]]] = {}

    def signature_with(self, changes: Mapping[str, Any]) -> Signature:
        instance = json.dumps({"op": self.op, **self.base, **changes}).encode()
        text = text_of(library.hstujit_instance_signature, instance, DIRECTIONS[self.direction])
        if text not in self.parsed:
            self.parsed[text] = Signature.of(json.loads(text))
        signature = self.parsed[text]
        self.seen.append(signature)
        return signature

    def signature(self, changes: Mapping[str, Any]) -> Signature | None:
        try:
            return self.signature_with(changes)
        except (InvalidConfigError, UnsupportedError):  # no such instance; what else is wrong, the environment, is said
            return None

    def result(self) -> Interface:
        sizes = self.find_sizes(self.signature_with({}))
        base = self.signature_with({})  # with distinct sizes
        for name, schema in self.properties.items():
            tried = ((value, self.signature({name: value})) for value in _other_values(schema))
            self.variants[name] = [(value, signature) for value, signature in tried if signature]
        dtypes = {name: names for name in self.properties if (names := self.dtype_arguments(name, base))}
        choices = {name: forms for name in self.properties if (forms := self.forms(name))}
        switches = [switch for name in self.properties if (switch := self.switch(name, base))]
        alignment = next((name for name in self.properties if self.changes_alignment(name, base)), None)
        everything = self.switch_everything_on(switches, choices, sizes)
        # A flag that changes nothing alone may change something beside others, as seed_tensor does beside dropout.
        inert = (name for name in self.properties if self.is_inert(name, base))
        switches += [switch for name in inert if (switch := self.switch_beside(name, everything))]
        derived = {*sizes, *dtypes, *choices, *(switch.name for switch in switches), alignment}
        arguments = _merge(self.seen)
        always = set.intersection(*({argument.name for argument in signature} for signature in self.seen))
        return Interface(
            op=self.op,
            direction=self.direction,
            inputs=tuple(argument for argument in arguments if not argument.is_output),
            optional=frozenset(argument.name for argument in arguments if argument.name not in always),
            outputs=tuple(argument for argument in arguments if argument.is_output),
            switches=tuple(switches),
            choices=tuple(choices.items()),
            sizes=tuple(sizes.items()),
            moved=tuple(self.moved(sizes, base)),
            dtypes=tuple(dtypes.items()),
            alignment=(alignment, self.largest_first(alignment)) if alignment else None,
            parameters=tuple(
                _parameter(name, schema)
                for name, schema in self.properties.items()
                if name not in derived and not self.is_about_backward(name, arguments)
            ),
            rows=tuple(self.rows()),
            shapes=self.shapes(arguments, choices),
            allowed=self.properties,
        )

    def find_sizes(self, base: Signature) -> dict[str, tuple[tuple[str, int], ...]]:
        """Parameters that are the size of an axis of an input.

        Those that are only a part of one, such as the heads of (L, heads * attn_dim), stay at another value than 1: so
        that attn_dim is not taken for the size itself.
        """
        sizes = {}
        for name, schema in self.properties.items():
            found = self.other_size(name, schema)
            if found is None:
                continue
            value, signature = found
            if axes := tuple(_axes_of(value, base, signature)):
                sizes[name], self.size_values[name] = axes, value
            if [a.name for a in signature] == [a.name for a in base] and signature != base:
                self.base[name], base = value, signature
        return sizes

    def other_size(
        self, name: str, schema: Mapping[str, Any], flags: Mapping[str, bool] | None = None
    ) -> tuple[int, Signature] | None:
        for value in _SIZES if schema.get("type") == "integer" else ():
            free = _allows(schema, value) and value not in self.base.values()
            if free and (signature := self.signature({**(flags or {}), name: value})):
                return value, signature
        return None

    def moved(
        self, sizes: Mapping[str, tuple[tuple[str, int], ...]], base: Signature
    ) -> Iterator[tuple[str, bool, Mapping[str, tuple[tuple[str, int], ...]]]]:
        """Flags that exchange axes of an input, and the sizes that are those of other axes then."""
        for flag, schema in self.properties.items():
            if schema.get("type") != "boolean" or not self.variants[flag]:
                continue
            value, flagged = self.variants[flag][0]
            if all(before.shape == after.shape for before, after in _common_inputs(base, flagged)):
                continue
            others = {}
            for name, axes in sizes.items():
                found = self.other_size(name, self.properties[name], {flag: value})
                now = tuple(_axes_of(found[0], flagged, found[1])) if found else axes
                if now and not set(axes) <= set(now):
                    others[name] = now
            if others:
                yield flag, value, others

    def switch_everything_on(
        self, switches: list[Switch], choices: Iterable[str], sizes: Iterable[str]
    ) -> dict[str, Any]:
        """Looks at the instance with as many arguments as there are at once: it says in which order they stand.

        Returns:
            Its parameters. Its signature is the first that is seen.
        """
        switched = {switch.name: not switch.drops for switch in switches}
        outputs = [name for name in self.properties if name not in switched and self.brings_outputs(name)]
        candidates: list[dict[str, Any]] = [{name: value} for name, value in switched.items()]
        candidates += [{name: self.variants[name][0][0]} for name in outputs]
        candidates += [{name: self.variants[name][0][0]} for name in choices if self.variants[name]]
        candidates += [{name: self.size_values[name]} for name in sizes]
        together: dict[str, Any] = {}
        best = self.signature_with({})
        for candidate in candidates:
            signature = self.signature({**together, **candidate})
            if signature is not None and len(signature) > len(best):
                together |= candidate
                best = signature
        self.seen.insert(0, best)
        return together

    def is_inert(self, name: str, base: Signature) -> bool:
        is_flag = self.properties[name].get("type") == "boolean"
        return is_flag and all(signature == base for _, signature in self.variants[name])

    def switch_beside(self, name: str, others: Mapping[str, Any]) -> Switch | None:
        changed = None if name in others else self.signature({**others, name: not self.properties[name]["default"]})
        return self.switch_between(name, self.seen[0], changed) if changed else None

    def brings_outputs(self, name: str) -> bool:
        """Whether a flag that is not at its default brings outputs."""
        if self.properties[name].get("type") != "boolean" or not self.variants[name]:
            return False
        return len(self.variants[name][0][1].outputs) > len(self.signature_with({}).outputs)

    def is_about_backward(self, name: str, arguments: list[Argument]) -> bool:
        """Whether it says that nobody wants a gradient: drab, of the input rab."""
        return self.direction == "forward" and name[0] == "d" and name[1:] in {a.name for a in arguments}

    def dtype_arguments(self, name: str, base: Signature) -> tuple[str, ...]:
        if not set(self.properties[name].get("enum", [None])) <= set(DATA_TYPES):
            return ()
        for _, signature in self.variants[name]:
            changed = tuple(
                argument.name
                for before, argument in _common_inputs(base, signature)
                if argument.is_tensor and argument.dtype != before.dtype
            )
            if changed:
                # An argument that no base has, such as num_targets, has a data type of its own as well.
                return changed + tuple(self.later_dtypes(name, changed))
        return ()

    def later_dtypes(self, name: str, known: tuple[str, ...]) -> Iterator[str]:
        default = self.properties[name]["default"]
        other = next(value for value, _ in self.variants[name])
        for parameter, found in self.variants.items():
            for value, signature in found:
                twin = self.signature({parameter: value, name: other}) if parameter != name else None
                for argument in twin.inputs if twin and default != other else ():
                    before = signature.find(argument.name)
                    if argument.name not in known and before and before.dtype != argument.dtype:
                        known += (argument.name,)
                        yield argument.name

    def forms(self, name: str) -> tuple[tuple[str, Argument], ...]:
        """The forms of the argument of the same name, where the parameter chooses among strings."""
        if self.properties[name].get("type") is not None:
            return ()
        found = ((value, signature.find(name)) for value, signature in self.variants[name])
        return tuple((value, argument) for value, argument in found if argument and not argument.is_output)

    def switch(self, name: str, base: Signature) -> Switch | None:
        if self.properties[name].get("type") != "boolean" or not self.variants[name]:
            return None
        return self.switch_between(name, base, self.variants[name][0][1])

    def switch_between(self, name: str, base: Signature, changed: Signature) -> Switch | None:
        """``base`` has the flag's default, ``changed`` its other value."""
        default = self.properties[name]["default"]
        without, with_ = (changed, base) if default else (base, changed)
        true, false = ({a.name for a in signature.inputs} for signature in (with_, without))
        return Switch(name, frozenset(true - false), frozenset(false - true), default) if true != false else None

    def changes_alignment(self, name: str, base: Signature) -> bool:
        if not all(isinstance(value, int) for value in self.properties[name].get("enum", [None])):
            return False
        return any(
            argument.alignment != before.alignment
            for _, signature in self.variants[name]
            for before, argument in _common_inputs(base, signature)
        )

    def largest_first(self, name: str) -> tuple[int, ...]:
        return tuple(sorted(self.properties[name]["enum"], reverse=True))

    def shapes(
        self, arguments: list[Argument], choices: Mapping[str, tuple[tuple[str, Argument], ...]]
    ) -> dict[str, str]:
        """Of every tensor; of its forms, the one of fewer axes first."""
        names = self.size_names(arguments)
        texts = {}
        for argument in (argument for argument in arguments if argument.is_tensor):
            forms = [form for _, form in choices.get(argument.name, ())] or [argument]
            by_axes = sorted(forms, key=lambda form: len(form.shape))
            texts[argument.name] = either([_shape_text(form, names) for form in by_axes])
        return texts

    def size_names(self, arguments: list[Argument]) -> dict[int, str]:
        """What sizes that are numbers stand for: a parameter, a product, or a letter for each of the others."""
        names = {value: name for name, value in {**self.size_values, **self.base}.items()}
        base = sorted(self.base.values())
        names |= {a * b: f"{names[a]} * {names[b]}" for a in base for b in base if a < b and a * b not in names}
        free = [letter for letter in "DEFGIJ" if letter not in _LETTERS.values()]
        for argument in sorted(arguments, key=lambda argument: argument.is_output):
            for size in (dimension.bias for dimension in argument.shape if dimension.is_constant):
                if size <= LARGEST_PLAIN or size in names:
                    continue
                factors = (f for f in base if size % f == 0 and size // f in names)
                factor = next(factors, None)
                names[size] = (
                    _LETTERS.get(argument.name) or free.pop(0)
                    if factor is None
                    else f"{names[factor]} * {names[size // factor]}"
                )
        return names

    def rows(self) -> Iterator[tuple[str, str]]:
        known = set()
        for signature in self.seen:
            bound = {a.name for a in signature if not a.is_tensor}
            bound.update(symbol for a in signature.inputs for symbol in _bound_by(a))
            for output in signature.outputs:
                for symbol in (s for dimension in output.shape for s in dimension.symbols):
                    if symbol not in bound and symbol not in known:
                        known.add(symbol)
                        yield symbol, output.name + "_rows"


def _shape_text(argument: Argument, names: Mapping[int, str]) -> str:
    sizes = (names.get(size.bias, size.text) if size.is_constant else size.text for size in argument.shape)
    return "(" + ", ".join(sizes) + ")"


def _bound_by(argument: Argument) -> Iterator[str]:
    return (dimension.symbols[0] for dimension in argument.shape if len(dimension.symbols) == 1)


def _axes_of(value: int, base: Signature, changed: Signature) -> Iterator[tuple[str, int]]:
    """Axes of inputs that have this size, and had another one or were not there."""
    for argument in changed.inputs:
        before = base.find(argument.name)
        for axis, dimension in enumerate(argument.shape):
            is_new = before is None or before.shape[axis] != dimension
            if dimension.is_constant and dimension.bias == value and is_new:
                yield argument.name, axis


def _common_inputs(base: Signature, signature: Signature) -> Iterator[tuple[Argument, Argument]]:
    return ((before, argument) for argument in signature.inputs if (before := base.find(argument.name)))


def _allows(schema: Mapping[str, Any], value: int) -> bool:
    return schema["minimum"] <= value <= schema["maximum"] and value % schema.get("multipleOf", 1) == 0


def _other_values(schema: Mapping[str, Any]) -> Iterable[Any]:
    if schema.get("type") == "boolean":
        return [not schema["default"]]
    if schema.get("type") == "integer":
        return [value for value in (2, 1) if _allows(schema, value)]
    return [value for value in schema["enum"] if value != schema.get("default")]


def _parameter(name: str, schema: Mapping[str, Any]) -> Parameter:
    is_integer = all(isinstance(value, int) for value in schema.get("enum", [None]))
    return Parameter(
        name=name,
        type={"boolean": "bool", "integer": "int"}.get(schema.get("type", ""), "int" if is_integer else "str"),
        default=schema.get("default"),
        allowed=tuple(map(str, schema.get("enum", ()))),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        doc=schema["description"],
    )


def _merge(signatures: Iterable[Signature]) -> list[Argument]:
    """All arguments, each behind the one that it follows."""
    merged: list[Argument] = []
    for signature in signatures:
        place = 0
        for argument in signature:
            names = [known.name for known in merged]
            if argument.name in names:
                place = names.index(argument.name) + 1
            else:
                merged.insert(place, argument)
                place += 1
    return merged
