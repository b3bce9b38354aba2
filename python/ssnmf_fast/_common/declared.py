"""Conversion of values from files (lists, mappings, text and numbers) to annotated types."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np


def as_declared(value: object, kind: Any, name: str) -> Any:
    """Convert a value to an annotated type, or raise a ValueError that names the difference."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    named = getattr(origin or kind, "__value__", None)  # by a `type` statement, as NDArray may be
    if named is not None:
        return as_declared(value, named[arguments] if arguments else named, name)
    if origin is Annotated:
        return as_declared(value, arguments[1], name)
    if origin in (Union, types.UnionType):
        errors = []
        for argument in arguments:
            try:
                return as_declared(value, argument, name)
            except ValueError as error:
                errors.append(error)
        raise errors[0]
    if is_dataclass(kind):
        hints, names = get_type_hints(kind, include_extras=True), [f.name for f in fields(kind)]
        needed = frozenset(names if isinstance(value, dict) else ())
        if isinstance(value, list) and len(value) <= len(names):  # of the first fields
            value = dict(zip(names, value, strict=False))
        make: Any = kind
        entries = _entries(value, {field: hints[field] for field in names}, needed, name)
        try:
            return make(**entries)
        except TypeError as error:  # a field is missing
            raise ValueError(f"{name} lacks fields of a {make.__name__}: {error}") from error
    if is_typeddict(kind):
        return _entries(value, get_type_hints(kind), kind.__required_keys__, name)
    plain: Any = origin or kind
    if plain is np.ndarray and isinstance(value, list):
        return np.array(value, dtype=np.float64)
    form: Any = {tuple: list, float: (float, int), None: type(None)}.get(plain, plain)
    if not isinstance(value, form) or (form in ((float, int), int) and isinstance(value, bool)):
        expected = {list: "a list", dict: "a mapping", None: "null"}.get(plain, plain.__name__)
        raise ValueError(f"{name} is {value!r:.50}; expected {expected}")
    if plain in (dict, Mapping) and arguments:
        return {key: as_declared(v, arguments[1], f"{name}[{key!r}]") for key, v in value.items()}
    if plain in (list, tuple) and arguments:
        single = plain is list or arguments[-1] is Ellipsis
        if not single and len(arguments) != len(value):
            raise ValueError(f"{name} has {len(value)} values; expected {len(arguments)}")
        kinds = [arguments[0]] * len(value) if single else arguments
        triples = zip(value, kinds, range(len(value)), strict=True)
        return plain(as_declared(v, argument, f"{name}[{k}]") for v, argument, k in triples)
    return value


def _entries(value: object, kinds: dict[str, Any], needed: frozenset[str], name: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {value!r:.50}; expected a mapping")
    strange, missing = value.keys() - kinds.keys(), needed - value.keys()
    if strange or missing:
        raise ValueError(f"{name} lacks {sorted(missing)}, or has the unknown {sorted(strange)}")
    return {key: as_declared(v, kinds[key], f"{name}[{key!r}]") for key, v in value.items()}
