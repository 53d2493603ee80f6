"""Records: what the server answers, as it came, read by attribute.

Guarantees: a record does not change, and keeps fields that this client does not know. Making one costs nothing: nested
records and times are made when they are read, once. What is not here: checks of what came. The server is the authority,
and a client must take what a newer one adds.

A record's class has the fields as annotations alone. How a field is converted is read from the annotation's text when the
first field of the class is read: `_plan`.
"""

from __future__ import annotations

import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from ._errors import without_credentials
from ._json import json_list, json_object

#: The longest value that is shown of a field.
_MOST_SHOWN = 120
_CAPITAL = re.compile(r"(?<!^)([A-Z])")
_UNDERSCORE = re.compile(r"_([a-z0-9])")
#: Names that Python reserves get an underscore behind.
_RESERVED = frozenset(keyword.kwlist)

_Convert = Callable[[Any], Any]
#: A field: its name in JSON, how it is converted, whether it may be absent.
_Field = tuple[str, "_Convert | None", bool]


def snake(name: str) -> str:
    """A field's name in Python: ``createdAt`` is ``created_at``."""
    name = _CAPITAL.sub(r"_\1", name).lower()
    return f"{name}_" if name in _RESERVED else name


def camel(name: str) -> str:
    """A field's name in JSON: ``created_at`` is ``createdAt``."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name.rstrip("_"))


def time_of(text: str) -> datetime:
    """An RFC 3339 time, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


class Record:
    """What the server answered. Fields are attributes, in snake_case; ``record["fieldName"]`` and ``raw`` have them by the
    server's names, also those that this client does not know."""

    _fields: ClassVar[dict[str, _Field]]
    _raw: Mapping[str, Any]

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.__dict__["_raw"] = raw

    @property
    def raw(self) -> Mapping[str, Any]:
        """The JSON object, as it came."""
        return self._raw

    def __getitem__(self, name: str) -> Any:
        return self._raw[name]

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return type(self) is type(other) and self._raw == other._raw

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._raw,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_plan(type(self)), *map(snake, self._raw)})

    def __repr__(self) -> str:
        shown = ", ".join(f"{snake(name)}={_shown(value)}" for name, value in self._raw.items())
        return f"{type(self).__name__}({shown})"


def _read(self: Record, name: str) -> Any:
    # Called once for each field: its value stands in `__dict__` from then on.
    kind = type(self)
    field = _plan_of(kind).get(name)
    raw = self.__dict__.get("_raw")
    if raw is None or name.startswith("_"):
        raise AttributeError(name)
    if field is None:
        key = camel(name)
        if key not in raw:
            raise AttributeError(f"A {kind.__name__} has no field {name!r}, and the server sent none.")
        value = unknown(raw[key])
    else:
        key, convert, may_be_absent = field
        value = raw.get(key)
        if value is None:
            if key not in raw and not may_be_absent:
                raise AttributeError(f"The server did not send the field {key!r} of this {kind.__name__}.")
        elif convert is not None:
            value = convert(value)
    self.__dict__[name] = value
    return value


def _refuse(self: Record, name: str, value: object = None) -> None:
    raise AttributeError(f"A {type(self).__name__} does not change: {name!r} cannot be set.")


# Set where type checkers do not look, so that a field that a class does not have is an error to them.
for _name, _function in (("__getattr__", _read), ("__setattr__", _refuse), ("__delattr__", _refuse)):
    setattr(Record, _name, _function)


def unknown(value: Any) -> Any:
    """A value whose type this client does not know: objects are records, and the elements of lists are as well."""
    if (fields := json_object(value)) is not None:
        return Record(fields)
    if (values := json_list(value)) is not None:
        return tuple(map(unknown, values))
    return value


def union_of(tag: str, members: Mapping[str, type[Record]], other: type[Record] = Record) -> Callable[[Any], Record]:
    """Makes a record of one of several classes, by the text of its field `tag`; of `other`, if none has it."""

    def make(raw: Any) -> Record:
        return members.get(raw.get(tag), other)(raw)

    return make


def fitting(
    other: type[Record], *members: tuple[type[Record], Mapping[str, tuple[Any, ...]]]
) -> Callable[[Any], Record]:
    """Makes a record of the first class that has these values in these fields, and whose fields are all there."""
    known: tuple[tuple[type[Record], Mapping[str, tuple[Any, ...]], frozenset[str]], ...] = ()

    def make(raw: Any) -> Record:
        nonlocal known
        if not known:
            known = tuple((kind, fixed, _required(kind)) for kind, fixed in members)
        for kind, fixed, required in known:
            for name, values in fixed.items():
                if raw.get(name) not in values:
                    break
            else:
                if required <= raw.keys():
                    return kind(raw)
        return other(raw)

    return make


def _required(kind: type[Record]) -> frozenset[str]:
    return frozenset(key for key, _, may_be_absent in _plan_of(kind).values() if not may_be_absent)


def _plan_of(kind: type[Record]) -> dict[str, _Field]:
    return kind.__dict__.get("_fields") or _plan(kind)


def _plan(kind: type[Record]) -> dict[str, _Field]:
    fields: dict[str, _Field] = {}
    for base in reversed(kind.__mro__):
        if not issubclass(base, Record) or base is Record:
            continue
        known = vars(sys.modules[base.__module__])
        # Texts, since every module with records has `from __future__ import annotations`.
        for name, annotation in inspect.get_annotations(base).items():
            parts = _alternatives(annotation)
            may_be_absent = "None" in parts
            convert = _conversion([part for part in parts if part != "None"], known)
            fields[name] = (camel(name), convert, may_be_absent)
    kind._fields = fields
    return fields


def _conversion(parts: list[str], known: Mapping[str, Any]) -> _Convert | None:
    if parts == ["datetime"]:
        return time_of
    if len(parts) != 1:
        return None
    head, _, inner = parts[0].removesuffix("]").partition("[")
    if head == "tuple":
        return _each_of_list(_conversion(_alternatives(inner.rsplit(",", 1)[0]), known))
    if head == "dict":
        return _each_of_object(_conversion(_alternatives(inner.partition(",")[2]), known))
    made = known.get("MAKERS", {}).get(head) or known.get(head)
    if not callable(made) or (isinstance(made, type) and not issubclass(made, Record)):
        return None

    def make(value: Any) -> Any:
        fields = json_object(value)
        return value if fields is None else made(fields)

    return make


def _each_of_list(convert: _Convert | None) -> _Convert:
    def make(value: Any) -> Any:
        values = json_list(value)
        if values is None:
            return value
        return tuple(values) if convert is None else tuple(map(convert, values))

    return make


def _each_of_object(convert: _Convert | None) -> _Convert | None:
    if convert is None:
        return None

    def make(value: Any) -> Any:
        fields = json_object(value)
        return value if fields is None else {name: convert(one) for name, one in fields.items()}

    return make


def _alternatives(annotation: str) -> list[str]:
    """The parts of ``A | B[C | D] | None``."""
    parts, depth, begin = list[str](), 0, 0
    for at, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[begin:at].strip())
            begin = at + 1
    return [*parts, annotation[begin:].strip()]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if (values := json_list(value)) is not None:
        return f"[{len(values)}]"
    text = repr(without_credentials(value) if isinstance(value, str) else value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
