"""Writes `python/agent_runtime/types.py`: what the server sends."""

from .description import Call, Choice, Description, Fault, Field, Record, Type, Union
from .python_text import HEAD, WIDTH, call_name, class_name, docstring, field_comment, quoted_text, snake_case

# What type checkers take for a tag that this client does not know.
LATER = "of a later server"
# Attributes of every record.
OF_RECORDS = {"raw"}
SCALARS = {
    "text": "str", "id": "str", "integer": "int", "number": "float", "boolean": "bool", "any": "Any",
}


class Types:
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
            f"{member.name}{class_name(tag.name)}"
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
        meanings = "".join(field_comment(f"`{value}`: {meaning}", "") for value, meaning in choice.values if meaning)
        doc = choice.doc.split("\n\n")[0]
        self.parts.append(f"{field_comment(doc, '')}{meanings}{_literal(choice.name, [value for value, _ in choice.values])}")

    def record(self, name: str, doc: str, fields: tuple[Field, ...]) -> None:
        lines, later = [], []
        for field in fields:
            snake = snake_case(field.name)
            if snake in OF_RECORDS:
                raise Fault(f"{name}.{field.name} would hide Record.{snake}")
            written = self.annotation(name, field, later)
            lines.append(f"{field_comment(field.doc, '    ')}    {snake}: {written}\n")
        for part in later:
            self.parts.append(part)
        body = docstring(doc, "    ") if doc else ""
        body += ("\n" if body and lines else "") + "".join(lines)
        self.parts.append(f"\nclass {name}(Record):\n{body or '    pass' + chr(10)}")

    def annotation(self, owner: str, field: Field, later: list[str]) -> str:
        type = field.type
        inner = self.written(type, f"{owner.removesuffix('Event')}{class_name(field.name)}", field.doc)
        return f"{inner} | None" if (type.nullable or not field.required) and type.kind != "any" else inner

    def written(self, type: Type, name: str, doc: str) -> str:
        """A type as an annotation; an object or a union without a name gets this one."""
        match type.kind:
            case "time":
                return "datetime"
            case "constant":
                return f"Literal[{quoted_text(type.value)}]"
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
            return f"Literal[{', '.join(map(quoted_text, constants))}]{'' if is_tag else ' | str'}"
        if any(one.kind != "named" for one in type.of) or type.tag:
            raise Fault(f"{name} is a union that the Python client cannot tell apart")
        names = [one.name for one in type.of]
        members = []
        for one in names:
            record = self.description.types[one]
            assert isinstance(record, Record)
            fixed = {field.name: _constants(field.type) for field in record.fields if _constants(field.type)}
            values = ", ".join(f"{quoted_text(key)}: ({', '.join(map(quoted_text, of))},)" for key, of in fixed.items())
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
                lines.append(f"    {snake_case(field.name)}: Literal[{quoted_text(LATER)}]\n")
                continue
            if len(types) == 1 and field.type.kind not in ("object", "union"):
                written = self.written(field.type, "", "")
            else:
                written = "Any"
            is_absent = is_absent or any(one.nullable for one in types) or field.name == "seq"
            lines.append(f"    {snake_case(field.name)}: {written}{' | None' if is_absent and written != 'Any' else ''}\n")
        other = self.own(f"Other{name}")
        doc = "    \"\"\"One that this client does not know: a later server sent it.\"\"\"\n"
        self.parts.append(f"\nclass {other}(Record):\n{doc}\n{''.join(lines)}")
        return other

    def tagged(self, union: Union) -> None:
        names = [name for name, _ in union.members]
        other = self.other(union.name, names, union.tag)
        self.unions.append(f"{field_comment(union.doc, '')}{_alias(union.name, [*names, other])}")
        self.maker_of_tag(union.name, union.tag, [(value, name) for name, value in union.members], other)

    def stream(self, call: Call) -> None:
        """The events that a caller of a stream gets: those with a number, and those without."""
        assert call.stream
        event = call.stream.event.name if call.stream.event else ""
        numbered = self.description.types[event] if event else None
        if isinstance(numbered, Union):
            members = [name for name, _ in numbered.members]
            tags = [(value, name) for name, value in numbered.members]
        else:
            members, tags = [event] if event else [], []
        for kind, type in call.stream.passing:
            name = self.own(f"{class_name(kind.replace('.', ' '))}Event")
            record = self.description.types[type.name]
            doc = record.doc
            self.parts.append(
                f"\nclass {name}(Record):\n{docstring(doc, '    ')}\n"
                f"    kind: Literal[{quoted_text(kind)}]\n    data: {type.name}\n"
            )
            members.append(name)
            tags.append((kind, name))
        alias = self.own(call.stream.name)
        if isinstance(numbered, Union):
            other = f"Other{event}"
        elif numbered is None:
            other = self.own(f"Other{alias}")
            doc = f"What this client does not know of the stream of ``{call_name(call)}``."
            self.parts.append(
                f"\nclass {other}(Record):\n{docstring(doc, '    ')}\n"
                f"    kind: Literal[{quoted_text(LATER)}]\n    data: Any\n"
            )
        else:
            kinds = next(field.type for field in numbered.fields if field.name == "kind")
            choice = self.description.types[kinds.name]
            assert isinstance(choice, Choice)
            tags += [(value, event) for value, _ in choice.values]
            other = event
        members += [other] if other not in members else []
        self.unions.append(f"#: What a caller of ``{call_name(call)}`` gets.\n{_alias(alias, members)}")
        self.maker_of_tag(alias, "kind", tags, other)

    def maker(self, name: str, function: str, arguments: list[str]) -> None:
        inner = "".join(f"        {argument},\n" for argument in arguments)
        self.makers.append(f'    "{name}": {function}(\n{inner}    ),\n')

    def maker_of_tag(self, name: str, tag: str, members: list[tuple[str, str]], other: str) -> None:
        inner = "".join(f"            {quoted_text(value)}: {member},\n" for value, member in members)
        self.maker(name, "union_of", [quoted_text(tag), f"{{\n{inner}        }}", other])


def _constants(type: Type) -> list:
    if type.kind == "constant":
        return [type.value]
    if type.kind == "union" and all(one.kind == "constant" for one in type.of):
        return [one.value for one in type.of]
    return []


def _literal(name: str, values: list[str]) -> str:
    line = f"{name}: TypeAlias = Literal[{', '.join(map(quoted_text, values))}] | str\n"
    if len(line) <= WIDTH + 1:
        return line
    return f"{name}: TypeAlias = (\n    Literal[\n" + "".join(f"        {quoted_text(value)},\n" for value in values) + "    ]\n    | str\n)\n"


def _alias(name: str, members: list[str]) -> str:
    line = f"{name}: TypeAlias = {' | '.join(members)}\n"
    if len(line) <= WIDTH + 1:
        return line
    return f"{name}: TypeAlias = (\n    " + "\n    | ".join(members) + "\n)\n"
