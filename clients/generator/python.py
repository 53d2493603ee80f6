"""Writes the Python client's nouns and types: `python/agent_runtime/types.py`, `inputs.py`, `_version.py` and
`resources/`. Everything else there is written by hand.

Guarantees: names are those of the description, in snake_case; a name that would hide another is a `Fault`. The
asynchronous classes differ from the synchronous ones in `async`, `await` and the names of what they give, and in nothing
else.
"""

from .description import Call, Choice, Description, Fault, Field, Noun, Record, Type
from .python_text import HEAD, WIDTH, class_name, docstring, field_comment, noun_name, quoted_text, snake_case
from .python_types import SCALARS, Types

PACKAGE = "python/agent_runtime"
# Calls written by hand beside those of a noun.
HELPERS = {"runs": "RunsHelpers"}
# What every call may answer says nothing about one.
COMMON_CODES = {
    "invalid-request", "invalid-body", "invalid-cursor", "request-timeout", "body-too-large", "too-many-requests",
    "headers-too-large", "internal", "overloaded", "database-unavailable", "audit-unavailable", "shutting-down",
    "deadline-exceeded", "unsupported-media-type", "unauthenticated", "permission-denied", "authorization-unavailable",
    "public-run-token-not-allowed", "csrf-origin-mismatch",
}


def files(description: Description, _: object = None) -> dict[str, str]:
    made = {
        "_version.py": _version(description.version),
        "types.py": Types(description).text(),
        "inputs.py": _inputs(description),
        "resources/__init__.py": _roots(description),
    }
    for noun in description.nouns:
        made[f"resources/{snake_case(noun.name)}.py"] = _module(description, noun, is_async=False)
        made[f"resources/async_{snake_case(noun.name)}.py"] = _module(description, noun, is_async=True)
    return {f"{PACKAGE}/{path}": text for path, text in made.items()}


def _version(version: str) -> str:
    return f'{HEAD}"""The version of the client: that of the server whose API description it was made from."""\n\n__version__ = "{version}"\n'


def _members(type: Type) -> list[Type]:
    """Those of a union, and of unions in it."""
    return [inner for one in type.of for inner in _members(one)] if type.kind == "union" else [type]


def _inputs(description: Description) -> str:
    """`inputs.py`: objects within bodies."""
    wanted = _input_names(description)
    parts = []
    for name in wanted:
        type = description.types[name]
        if not isinstance(type, Record):
            raise Fault(f"{name} is sent within a body, and is a union")
        lines = []
        for field in type.fields:
            written = _resolved(_given(field.type, is_within=True), description, "")
            written = f"{written} | None" if field.type.nullable else written
            lines.append(field_comment(field.doc, "    "))
            lines.append(f"    {field.name}: {written if field.required else f'NotRequired[{written}]'}\n")
        parts.append(f"\nclass {name}Input(TypedDict):\n{docstring(type.doc, '    ')}\n{''.join(lines)}")
    return (
        f'{HEAD}"""Objects within bodies, as type checkers see them. Their fields have the names of the API. A record that the\n'
        'server sent does as well.\n"""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping, Sequence\n"
        "from typing import Any, NotRequired, TypedDict\n\n"
        "from . import types\n\n" + "\n".join(parts)
    )


def _input_names(description: Description) -> list[str]:
    """The records within bodies, those that others have in them first."""
    ordered: list[str] = []

    def visit(type: Type) -> None:
        for one in type.of:
            visit(one)
        if type.kind == "named" and isinstance(named := description.types[type.name], Record):
            for field in named.fields:
                visit(field.type)
            if type.name not in ordered:
                ordered.append(type.name)

    for call in description.calls:
        if call.body:
            for field in description.fields(call.body):
                visit(field.type)
    return ordered


def _given(type: Type, *, is_within: bool = False) -> str:
    """The type of an argument, with each name of a type between two `@`."""
    match type.kind:
        case "time":
            return "str" if is_within else "datetime | str"
        case "constant":
            return f"Literal[{quoted_text(type.value)}]"
        case "list":
            return f"Sequence[{_given(type.of[0], is_within=is_within)}]"
        case "map":
            return f"Mapping[str, {_given(type.of[0], is_within=is_within)}]"
        case "named":
            return f"@{type.name}@"
        case "union":
            constants = [one.value for one in _members(type) if one.kind == "constant"]
            others = [_given(one, is_within=is_within) for one in _members(type) if one.kind != "constant"]
            closed = [f"Literal[{', '.join(map(quoted_text, constants))}]", "str"] if constants else []
            return " | ".join(dict.fromkeys([*closed, *others]))
        case "object":
            return "Mapping[str, Any]"
    return SCALARS[type.kind]


def _resolved(text: str, description: Description, module: str) -> str:
    """Names in the type of an argument, as a module sees them."""
    parts = text.split("@")
    for at in range(1, len(parts), 2):
        name = parts[at]
        type = description.types[name]
        if isinstance(type, Choice):
            parts[at] = f"types.{name}"
        elif isinstance(type, Record) and type.received:
            parts[at] = f"{module}{name}Input | types.{name}"
        else:
            parts[at] = f"{module}{name}Input"
    return "".join(parts)


def _module(description: Description, noun: Noun, *, is_async: bool) -> str:
    classes = "\n\n".join(_noun(description, one, is_async=is_async) for one in _within(noun))
    prefix = "Async" if is_async else ""
    imports = {f"{prefix}Resource": "_resource"}
    if f"{prefix}Pages[" in classes or f"{prefix}Page[" in classes:
        imports["AsyncPages" if is_async else "Page"] = "_page"
    if f"{prefix}Stream[" in classes:
        imports[f"{prefix}Stream"] = "_stream"
    lines = ["from __future__ import annotations\n"]
    collections = [name for name in ("Mapping", "Sequence") if f"{name}[" in classes]
    if collections:
        lines.append(f"from collections.abc import {', '.join(collections)}")
    if "datetime" in classes:
        lines.append("from datetime import datetime")
    typing = [name for name in ("Any", "Literal", "overload") if _has_word(classes, name)]
    if any(one.nouns for one in _within(noun)):
        imports[f"{prefix}Transport"] = "_transport"
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    if len(lines) > 1:
        lines.append("")
    packages = [name for name in ("inputs", "types") if f"{name}." in classes]
    if packages:
        lines.append(f"from .. import {', '.join(packages)}")
    if "MAX_SILENCE" in classes:
        lines.append("from .._following import MAX_SILENCE")
    for one in _within(noun):
        if one.name in HELPERS:
            lines.append(f"from .._helpers import {prefix}{HELPERS[one.name]}")
    lines.append("from .._options import CallOptions")
    if "_page" in imports.values():
        lines.append(f"from .._page import {next(name for name, of in imports.items() if of == '_page')}")
    protocol = [name for name in ("Null", "body_of", "segment") if _has_word(classes, name)]
    if protocol:
        lines.append(f"from .._protocol import {', '.join(protocol)}")
    if any(one.name not in HELPERS for one in _within(noun)):
        lines.append(f"from .._resource import {prefix}Resource")
    if "_stream" in imports.values():
        lines.append(f"from .._stream import {prefix}Stream")
    if "_transport" in imports.values():
        lines.append(f"from .._transport import {prefix}Transport")
    title = noun.doc or f"Calls of {noun.word}."
    return f'{HEAD}"""{_one_line(title)}"""\n\n' + "\n".join(lines) + f"\n\n\n{classes}"


def _one_line(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _has_word(text: str, word: str) -> bool:
    return word in "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


def _within(noun: Noun) -> list[Noun]:
    """The noun and those in it, inner ones first."""
    return [one for inner in noun.nouns for one in _within(inner)] + [noun]


def _noun(description: Description, noun: Noun, *, is_async: bool) -> str:
    prefix = "Async" if is_async else ""
    base = f"{prefix}{HELPERS.get(noun.name, 'Resource')}"
    lines = [f"class {class_name(noun.name, is_async=is_async)}({base}):\n"]
    lines.append(docstring(noun.doc or f"Calls of `{noun_name(noun.name)}`", "    "))
    if noun.nouns:
        lines.append(f"\n    def __init__(self, transport: {prefix}Transport) -> None:\n        super().__init__(transport)\n")
        for inner in noun.nouns:
            lines.append(f"        self.{snake_case(inner.word)} = {class_name(inner.name, is_async=is_async)}(transport)\n")
    for call in noun.calls:
        lines.append("\n" + _call(description, call, is_async=is_async))
    return "".join(lines)


def _call(description: Description, call: Call, *, is_async: bool) -> str:
    names = [snake_case(field.name) for field in call.ids]
    body = description.fields(call.body) if call.body else ()
    query = call.filters
    fields = [*sorted(body, key=lambda field: not field.required), *query]
    taken = ["self", *names, *(snake_case(field.name) for field in fields), "options"]
    if len(set(taken)) < len(taken):
        raise Fault(f"{call.name} has two arguments of one name")
    answer = _answered(call, is_async=is_async)
    # A list is asked for when it is awaited or iterated over, a stream when it is iterated over.
    define = "async def" if is_async and not call.page and not call.stream else "def"
    text = ""
    if call.body and call.body.kind == "union":
        for member in call.body.of:
            own = sorted(description.fields(member), key=lambda field: not field.required)
            text += "    @overload\n" + _signature(description, call, names, own, answer, define, stub=True)
    text += _signature(description, call, names, fields, answer, define)
    text += docstring(_said(call, fields), "        ")
    return text + _work(call, body, query, is_async=is_async)


def _answered(call: Call, *, is_async: bool) -> str:
    if call.page:
        return f"{'AsyncPages' if is_async else 'Page'}[{_made(call.page.item)}]"
    if call.stream:
        return f"{'AsyncStream' if is_async else 'Stream'}[types.{_stream_event(call)}]"
    return _made(call.answer) if call.answer else "None"


def _made(type: Type) -> str:
    if type.kind != "named":
        raise Fault(f"an answer of the type {type} has no name")
    return f"types.{type.name}"


def _stream_event(call: Call) -> str:
    assert call.stream
    return call.stream.name


def _signature(
    description: Description, call: Call, names: list[str], fields: list[Field], answer: str, define: str, *, stub=False
) -> str:
    arguments = ["self", *(f"{name}: str" for name in names), "*"]
    of_body = {field.name for field in description.fields(call.body)} if call.body else set()
    for field in fields:
        written = _resolved(_given(field.type), description, "inputs.")
        if field.type.nullable and field.name in of_body:
            written += " | Null"
        if field.required:
            arguments.append(f"{snake_case(field.name)}: {written}")
        else:
            is_any = written == "Any"
            arguments.append(f"{snake_case(field.name)}: {written}{'' if is_any else ' | None'} = None")
    if call.stream:
        arguments += ["after: int | None = None"] if call.stream.event else []
        arguments.append("max_silence: float = MAX_SILENCE")
    arguments.append("options: CallOptions | None = None")
    end = " ...\n" if stub else "\n"
    line = f"    {define} {snake_case(call.verb)}({', '.join(arguments)}) -> {answer}:{end}"
    if len(line) <= WIDTH + 1:
        return line
    inner = "".join(f"        {argument},\n" for argument in arguments)
    return f"    {define} {snake_case(call.verb)}(\n{inner}    ) -> {answer}:{end}"


def _said(call: Call, fields: list[Field]) -> str:
    """A call's docstring."""
    text = f"{call.summary}.\n\nAccess: {call.access}."
    codes = [code for code in call.codes if code not in COMMON_CODES]
    if codes:
        text += f" May also be refused with {', '.join(f'`{code}`' for code in codes)}."
    if call.idempotent:
        text += " Is sent again after a cut under one idempotency key, so it happens once."
    notes = [f"- `{snake_case(field.name)}`: {' '.join(field.doc.split())}" for field in fields if field.doc]
    if call.stream:
        if call.stream.event:
            notes.append("- `after`: the number of the event after which it begins.")
        notes.append("- `max_silence`: seconds without a byte, after which it connects again.")
    return text + ("\n\n" + "\n".join(notes) if notes else "")


def _work(call: Call, body: tuple[Field, ...], query: tuple[Field, ...], *, is_async: bool) -> str:
    path = call.path
    for field in call.ids:
        path = path.replace(f"{{{field.name}}}", f"{{segment({snake_case(field.name)})}}")
    path = f'f"{path}"' if call.ids else f'"{path}"'
    given, sent = _pairs(query), _pairs(body)
    wait = "await " if is_async else ""
    if call.stream:
        parts = [f'types.MAKERS["{_stream_event(call)}"]', path]
        parts += [f"query={given}"] if query else []
        parts += [f"after={'after' if call.stream.event else None}", "max_silence=max_silence", "options=options"]
        return _invoked("return ", "self._stream", parts)
    if call.page:
        maker = _maker(call.page.item)
        return _invoked("return ", "self._list", [maker, path, f"query={given}", "options=options"])
    parts = [_maker(call.answer)] if call.answer else []
    parts += [f'"{call.method}"', path]
    if query:
        parts.append(f"query={given}")
    if call.body:
        parts.append(f"body=body_of({sent})")
    if call.idempotent:
        parts.append("is_idempotent=True")
    parts.append("options=options")
    if call.answer:
        return _invoked(f"return {wait}", "self._call", parts)
    return _invoked(wait, "self._do", parts)


def _maker(type: Type) -> str:
    return f"types.{type.name}"


def _pairs(fields: tuple[Field, ...]) -> str:
    """Fields by their names, in one line, or each in its own as the arguments of a call."""
    pairs = [f"{quoted_text(field.name)}: {snake_case(field.name)}" for field in fields]
    line = f"{{{', '.join(pairs)}}}"
    if len(line) < WIDTH - 30:
        return line
    return "{\n" + "".join(f"                {pair},\n" for pair in pairs) + "            }"


def _invoked(before: str, function: str, parts: list[str]) -> str:
    line = f"        {before}{function}({', '.join(parts)})\n"
    if len(line) <= WIDTH + 1 and "\n" not in line[:-1]:
        return line
    inner = "".join(f"            {part},\n" for part in parts)
    return f"        {before}{function}(\n{inner}        )\n"


def _roots(description: Description) -> str:
    """`resources/__init__.py`: the nouns of both clients, each loaded when it is first used."""
    parts, imports = [], []
    for is_async in (False, True):
        prefix = "Async" if is_async else ""
        lines = [f"class {prefix}Nouns:\n    \"\"\"The nouns of `{prefix}AgentRuntime`.\"\"\"\n\n    _transport: {prefix}Transport\n"]
        lines[0] = lines[0].replace("`", "``")
        for noun in description.nouns:
            name, module = class_name(noun.name, is_async=is_async), ("async_" if is_async else "") + snake_case(noun.name)
            imports.append(f"    from .{module} import {name}\n")
            lines.append(
                f"\n    @cached_property\n    def {snake_case(noun.name)}(self) -> {name}:\n"
                f"{docstring(noun.doc or f'Calls of {noun.word}', '        ')}"
                f"        from .{module} import {name}\n\n        return {name}(self._transport)\n"
            )
        parts.append("".join(lines))
    return (
        f'{HEAD}"""The nouns of the clients. Each is loaded when it is first used."""\n\n'
        "from __future__ import annotations\n\nfrom functools import cached_property\nfrom typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from .._transport import AsyncTransport, Transport\n"
        + "".join(sorted(imports))
        + "\n\n"
        + "\n\n".join(parts)
    )
