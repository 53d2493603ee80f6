"""Writes the Python client's nouns and types: `python/agent_runtime/types.py`, `inputs.py`, `_version.py` and
`resources/`. Everything else there is written by hand.

Guarantees: names are those of the description, in snake_case; a name that would hide another is a `Fault`. The
asynchronous classes differ from the synchronous ones in `async`, `await` and the names of what they give, and in nothing
else.
"""

import keyword
import textwrap

from .description import Call, Choice, Description, Fault, Field, Noun, Record, Type, Union, words

PACKAGE = "python/agent_runtime"
HEAD = "# Written by clients/generate from the API description.\n"
WIDTH = 120
# Calls written by hand beside those of a noun.
HELPERS = {"runs": "RunsHelpers"}
# What every call may answer says nothing about one.
COMMON_CODES = {
    "invalid-request", "invalid-body", "invalid-cursor", "request-timeout", "body-too-large", "too-many-requests",
    "headers-too-large", "internal", "overloaded", "database-unavailable", "audit-unavailable", "shutting-down",
    "deadline-exceeded", "unsupported-media-type", "unauthenticated", "permission-denied", "authorization-unavailable",
    "public-run-token-not-allowed", "csrf-origin-mismatch",
}
# What type checkers take for a tag that this client does not know.
LATER = "of a later server"
# Attributes of every record.
OF_RECORDS = {"raw"}
SCALARS = {
    "text": "str", "id": "str", "integer": "int", "number": "float", "boolean": "bool", "any": "Any",
}


def files(description: Description, _: object = None) -> dict[str, str]:
    made = {
        "_version.py": _version(description.version),
        "types.py": _Types(description).text(),
        "inputs.py": _inputs(description),
        "resources/__init__.py": _roots(description),
    }
    for noun in description.nouns:
        made[f"resources/{_snake(noun.name)}.py"] = _module(description, noun, is_async=False)
        made[f"resources/async_{_snake(noun.name)}.py"] = _module(description, noun, is_async=True)
    return {f"{PACKAGE}/{path}": text for path, text in made.items()}


def _version(version: str) -> str:
    return f'{HEAD}"""The version of the client: that of the server whose API description it was made from."""\n\n__version__ = "{version}"\n'


def _snake(name: str) -> str:
    snake = "_".join(words(name))
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def _class(name: str, *, is_async: bool = False) -> str:
    """`projects.teamGrants` is the class `ProjectsTeamGrants`."""
    pascal = "".join(word.capitalize() for word in words(name))
    return f"Async{pascal}" if is_async else pascal


def _doc(text: str, indent: str) -> str:
    """A docstring; of several lines where it is long."""
    text = text.strip()
    text = text if text.endswith((".", ":", "?")) else f"{text}."
    text = text.replace("\\", "\\\\").replace('"""', "'''").replace("`", "``").replace("````", "``")
    paragraphs = [
        "\n".join(
            line
            for one in paragraph.split("\n")
            for line in textwrap.wrap(
                one, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False,
                subsequent_indent="  " if one.startswith("- ") else "",
            )
        )
        for paragraph in text.split("\n\n")
    ]
    whole = "\n\n".join(paragraphs)
    closing = '"""' if "\n" not in whole and len(whole) + len(indent) + 6 <= WIDTH else f'\n{indent}"""'
    return indent + ('"""' + whole + closing).replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n").replace(
        f"\n{indent}{indent}", f"\n{indent}") + "\n"


def _comment(text: str, indent: str) -> str:
    text = " ".join(text.replace("`", "``").split())
    wrapped = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{indent}#: {line}\n" for line in wrapped)


class _Types:
    """`types.py`: what the server sends."""

    def __init__(self, description: Description):
        self.description = description
        self.parts: list[str] = []
        # After all classes, since a union is made of them.
        self.unions: list[str] = []
        self.makers: list[str] = []
        self.names = set(description.types)
        # Fields that tell members of unions without a tag apart, by the name that a type of theirs would have.
        self.tags = {
            f"{member.name}{_class(tag.name)}"
            for type in description.types.values()
            if isinstance(type, Record)
            for field in type.fields
            if field.type.kind == "union"
            for member in field.type.of
            if member.kind == "named"
            for tag in description.fields(member)
            if _constants(tag.type)
        }

    def text(self) -> str:
        types = self.description.types
        for name, type in types.items():
            # What says what a stream's line holds is for the core.
            if isinstance(type, Choice):
                self.choice(type)
            elif isinstance(type, Record) and type.received:
                self.record(name, type.doc, type.fields)
            elif isinstance(type, Union) and type.received:
                self.tagged(type)
        for call in self.description.calls:
            if call.stream:
                self.stream(call)
        makers = "".join(self.makers)
        return (
            f'{HEAD}"""What the server sends, in the order of the API description.\n\n'
            "Texts of a closed set are open here: a later server may send others. So is each union: what this client does\n"
            'not know is a record of the class whose name begins with ``Other``.\n"""\n\n'
            "from __future__ import annotations\n\n"
            "from collections.abc import Callable, Mapping\n"
            "from datetime import datetime\n"
            "from typing import Any, Literal, TypeAlias\n\n"
            "from ._record import Record, fitting, union_of\n\n"
            + "\n".join(self.parts)
            + "\n\n"
            + "\n".join(self.unions)
            + "\n#: Makes a record of one of several classes, by the name of what it is one of.\n"
            + f"MAKERS: Mapping[str, Callable[[Any], Any]] = {{\n{makers}}}\n"
        )

    def own(self, name: str) -> str:
        if name in self.names:
            raise Fault(f"the Python client has two types of the name {name}")
        self.names.add(name)
        return name

    def choice(self, choice: Choice) -> None:
        meanings = "".join(_comment(f"`{value}`: {meaning}", "") for value, meaning in choice.values if meaning)
        doc = choice.doc.split("\n\n")[0]
        self.parts.append(f"{_comment(doc, '')}{meanings}{_literal(choice.name, [value for value, _ in choice.values])}")

    def record(self, name: str, doc: str, fields: tuple[Field, ...]) -> None:
        lines, later = [], []
        for field in fields:
            snake = _snake(field.name)
            if snake in OF_RECORDS:
                raise Fault(f"{name}.{field.name} would hide Record.{snake}")
            written = self.annotation(name, field, later)
            lines.append(f"{_comment(field.doc, '    ')}    {snake}: {written}\n")
        for part in later:
            self.parts.append(part)
        body = _doc(doc, "    ") if doc else ""
        body += ("\n" if body and lines else "") + "".join(lines)
        self.parts.append(f"\nclass {name}(Record):\n{body or '    pass' + chr(10)}")

    def annotation(self, owner: str, field: Field, later: list[str]) -> str:
        type = field.type
        inner = self.written(type, f"{owner.removesuffix('Event')}{_class(field.name)}", field.doc)
        return f"{inner} | None" if (type.nullable or not field.required) and type.kind != "any" else inner

    def written(self, type: Type, name: str, doc: str) -> str:
        """A type as an annotation; an object or a union without a name gets this one."""
        match type.kind:
            case "time":
                return "datetime"
            case "constant":
                return f"Literal[{_quoted(type.value)}]"
            case "named":
                return type.name
            case "list":
                return f"tuple[{self.nested(type.of[0], name, doc)}, ...]"
            case "map":
                return f"dict[str, {self.nested(type.of[0], name, doc)}]"
            case "object":
                self.record(self.own(name), doc, type.fields)
                return name
            case "union":
                return self.union(type, name, doc)
        return SCALARS[type.kind]

    def nested(self, type: Type, name: str, doc: str) -> str:
        written = self.written(type, name, doc)
        return f"{written} | None" if type.nullable and type.kind != "any" else written

    def union(self, type: Type, name: str, doc: str) -> str:
        if constants := _constants(type):
            # What tells one of several apart is closed: the class of what is not known has a text of its own.
            is_tag = name in self.tags
            return f"Literal[{', '.join(map(_quoted, constants))}]{'' if is_tag else ' | str'}"
        if any(one.kind != "named" for one in type.of) or type.tag:
            raise Fault(f"{name} is a union that the Python client cannot tell apart")
        names = [one.name for one in type.of]
        members = []
        for one in names:
            record = self.description.types[one]
            assert isinstance(record, Record)
            fixed = {field.name: _constants(field.type) for field in record.fields if _constants(field.type)}
            values = ", ".join(f"{_quoted(key)}: ({', '.join(map(_quoted, of))},)" for key, of in fixed.items())
            members.append(f"({one}, {{{values}}})")
        self.own(name)
        other = self.other(name, names, "")
        self.unions.append(_alias(name, [*names, other]))
        self.maker(name, "fitting", [other, *members])
        return name

    def other(self, name: str, members: list[str], tag: str) -> str:
        """The class of what is none of the members: with the fields that all of them have."""
        records = [self.description.types[member] for member in members]
        first, *others = [record.fields for record in records if isinstance(record, Record)]
        common = [field for field in first if all(field.name in {one.name for one in fields} for fields in others)]
        lines = []
        for field in common:
            types = {fields_of.type for record in records for fields_of in record.fields if fields_of.name == field.name}
            is_absent = any(not one.required for record in records for one in record.fields if one.name == field.name)
            if all(_constants(one) for one in types):
                lines.append("    #: Any other text. It has a type of its own, so that those that are known tell the rest apart.\n")
                lines.append(f"    {_snake(field.name)}: Literal[{_quoted(LATER)}]\n")
                continue
            if len(types) == 1 and field.type.kind not in ("object", "union"):
                written = self.written(field.type, "", "")
            else:
                written = "Any"
            is_absent = is_absent or any(one.nullable for one in types) or field.name == "seq"
            lines.append(f"    {_snake(field.name)}: {written}{' | None' if is_absent and written != 'Any' else ''}\n")
        other = self.own(f"Other{name}")
        doc = "    \"\"\"One that this client does not know: a later server sent it.\"\"\"\n"
        self.parts.append(f"\nclass {other}(Record):\n{doc}\n{''.join(lines)}")
        return other

    def tagged(self, union: Union) -> None:
        names = [name for name, _ in union.members]
        other = self.other(union.name, names, union.tag)
        self.unions.append(f"{_comment(union.doc, '')}{_alias(union.name, [*names, other])}")
        self.maker_of_tag(union.name, union.tag, [(value, name) for name, value in union.members], other)

    def stream(self, call: Call) -> None:
        """The events that a caller of a stream gets: those with a number, and those without."""
        assert call.stream
        event = call.stream.event.name
        numbered = self.description.types[event]
        members = [name for name, _ in numbered.members] if isinstance(numbered, Union) else [event]
        tags = [(value, name) for name, value in numbered.members] if isinstance(numbered, Union) else []
        for kind, type in call.stream.passing:
            name = self.own(f"{_class(kind.replace('.', ' '))}Event")
            record = self.description.types[type.name]
            doc = record.doc
            self.parts.append(
                f"\nclass {name}(Record):\n{_doc(doc, '    ')}\n"
                f"    kind: Literal[{_quoted(kind)}]\n    data: {type.name}\n"
            )
            members.append(name)
            tags.append((kind, name))
        alias = self.own(f"{event.removesuffix('Event')}StreamEvent")
        if isinstance(numbered, Union):
            other = f"Other{event}"
        else:
            kinds = next(field.type for field in numbered.fields if field.name == "kind")
            choice = self.description.types[kinds.name]
            assert isinstance(choice, Choice)
            tags += [(value, event) for value, _ in choice.values]
            other = event
        members += [other] if other not in members else []
        self.unions.append(f"#: What a caller of ``{_python_name(call)}`` gets.\n{_alias(alias, members)}")
        self.maker_of_tag(alias, "kind", tags, other)

    def maker(self, name: str, function: str, arguments: list[str]) -> None:
        inner = "".join(f"        {argument},\n" for argument in arguments)
        self.makers.append(f'    "{name}": {function}(\n{inner}    ),\n')

    def maker_of_tag(self, name: str, tag: str, members: list[tuple[str, str]], other: str) -> None:
        inner = "".join(f"            {_quoted(value)}: {member},\n" for value, member in members)
        self.maker(name, "union_of", [_quoted(tag), f"{{\n{inner}        }}", other])


def _members(type: Type) -> list[Type]:
    """Those of a union, and of unions in it."""
    return [inner for one in type.of for inner in _members(one)] if type.kind == "union" else [type]


def _constants(type: Type) -> list:
    if type.kind == "constant":
        return [type.value]
    if type.kind == "union" and all(one.kind == "constant" for one in type.of):
        return [one.value for one in type.of]
    return []


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _literal(name: str, values: list[str]) -> str:
    line = f"{name}: TypeAlias = Literal[{', '.join(map(_quoted, values))}] | str\n"
    if len(line) <= WIDTH + 1:
        return line
    return f"{name}: TypeAlias = (\n    Literal[\n" + "".join(f"        {_quoted(value)},\n" for value in values) + "    ]\n    | str\n)\n"


def _alias(name: str, members: list[str]) -> str:
    line = f"{name}: TypeAlias = {' | '.join(members)}\n"
    if len(line) <= WIDTH + 1:
        return line
    return f"{name}: TypeAlias = (\n    " + "\n    | ".join(members) + "\n)\n"


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
            lines.append(_comment(field.doc, "    "))
            lines.append(f"    {field.name}: {written if field.required else f'NotRequired[{written}]'}\n")
        parts.append(f"\nclass {name}Input(TypedDict):\n{_doc(type.doc, '    ')}\n{''.join(lines)}")
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
            return f"Literal[{_quoted(type.value)}]"
        case "list":
            return f"Sequence[{_given(type.of[0], is_within=is_within)}]"
        case "map":
            return f"Mapping[str, {_given(type.of[0], is_within=is_within)}]"
        case "named":
            return f"@{type.name}@"
        case "union":
            constants = [one.value for one in _members(type) if one.kind == "constant"]
            others = [_given(one, is_within=is_within) for one in _members(type) if one.kind != "constant"]
            closed = [f"Literal[{', '.join(map(_quoted, constants))}]", "str"] if constants else []
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
    lines = [f"class {_class(noun.name, is_async=is_async)}({base}):\n"]
    lines.append(_doc(noun.doc or f"Calls of `{_python_noun(noun.name)}`", "    "))
    if noun.nouns:
        lines.append(f"\n    def __init__(self, transport: {prefix}Transport) -> None:\n        super().__init__(transport)\n")
        for inner in noun.nouns:
            lines.append(f"        self.{_snake(inner.word)} = {_class(inner.name, is_async=is_async)}(transport)\n")
    for call in noun.calls:
        lines.append("\n" + _call(description, call, is_async=is_async))
    return "".join(lines)


def _python_noun(name: str) -> str:
    return ".".join(_snake(word) for word in name.split("."))


def _python_name(call: Call) -> str:
    return f"{_python_noun(call.noun)}.{_snake(call.verb)}"


def _call(description: Description, call: Call, *, is_async: bool) -> str:
    names = [_snake(field.name) for field in call.ids]
    body = description.fields(call.body) if call.body else ()
    query = () if call.stream else call.query
    fields = [*sorted(body, key=lambda field: not field.required), *query]
    taken = ["self", *names, *(_snake(field.name) for field in fields), "options"]
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
    text += _doc(_said(call, fields), "        ")
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
    return f"{call.stream.event.name.removesuffix('Event')}StreamEvent"


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
            arguments.append(f"{_snake(field.name)}: {written}")
        else:
            is_any = written == "Any"
            arguments.append(f"{_snake(field.name)}: {written}{'' if is_any else ' | None'} = None")
    if call.stream:
        arguments += ["after: int | None = None", "max_silence: float = MAX_SILENCE"]
    arguments.append("options: CallOptions | None = None")
    end = " ...\n" if stub else "\n"
    line = f"    {define} {_snake(call.verb)}({', '.join(arguments)}) -> {answer}:{end}"
    if len(line) <= WIDTH + 1:
        return line
    inner = "".join(f"        {argument},\n" for argument in arguments)
    return f"    {define} {_snake(call.verb)}(\n{inner}    ) -> {answer}:{end}"


def _said(call: Call, fields: list[Field]) -> str:
    """A call's docstring."""
    text = f"{call.summary}.\n\nAccess: {call.access}."
    codes = [code for code in call.codes if code not in COMMON_CODES]
    if codes:
        text += f" May also be refused with {', '.join(f'`{code}`' for code in codes)}."
    if call.idempotent:
        text += " Is sent again after a cut under one idempotency key, so it happens once."
    notes = [f"- `{_snake(field.name)}`: {' '.join(field.doc.split())}" for field in fields if field.doc]
    if call.stream:
        notes.append("- `after`: the number of the event after which it begins.")
        notes.append("- `max_silence`: seconds without a byte, after which it connects again.")
    return text + ("\n\n" + "\n".join(notes) if notes else "")


def _work(call: Call, body: tuple[Field, ...], query: tuple[Field, ...], *, is_async: bool) -> str:
    path = call.path
    for field in call.ids:
        path = path.replace(f"{{{field.name}}}", f"{{segment({_snake(field.name)})}}")
    path = f'f"{path}"' if call.ids else f'"{path}"'
    given, sent = _pairs(query), _pairs(body)
    wait = "await " if is_async else ""
    if call.stream:
        parts = [f'types.MAKERS["{_stream_event(call)}"]', path, "after=after", "max_silence=max_silence", "options=options"]
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
    pairs = [f"{_quoted(field.name)}: {_snake(field.name)}" for field in fields]
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
            name, module = _class(noun.name, is_async=is_async), ("async_" if is_async else "") + _snake(noun.name)
            imports.append(f"    from .{module} import {name}\n")
            lines.append(
                f"\n    @cached_property\n    def {_snake(noun.name)}(self) -> {name}:\n"
                f"{_doc(noun.doc or f'Calls of {noun.word}', '        ')}"
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
