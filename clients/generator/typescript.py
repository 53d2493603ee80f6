"""Writes the TypeScript client's nouns and types: JavaScript with types in its comments, and their declarations.

Not here: the core (`clients/typescript/src`), which each call hands its request to.
"""

import json
import pathlib
import re

from .description import Call, Choice, Description, Field, Noun, Record, Type, Union

HEAD = "// From the API description: clients/generate writes this file.\n"
# Open, and still completed by editors.
OTHERS = "(string & {})"
LIST_QUERY = ["cursor", "limit", "order"]
WIDTH = 118


def files(description: Description, clients: pathlib.Path) -> dict[str, str]:
    """The files by their paths below `clients`."""
    package = (clients / "typescript/package.json").read_text(encoding="utf-8")
    return {
        "typescript/src/resources.js": _resources(description),
        "typescript/src/types.d.ts": _types(description),
        "typescript/src/version.js": f'{HEAD}\nexport const VERSION = "{description.version}";\n',
        "typescript/package.json": re.sub(r'(?m)^  "version": ".*",$', f'  "version": "{description.version}",', package),
    }


def _class(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split("."))


def _comment(lines: list[str], indent: str = "") -> str:
    """A comment of these lines; on one line if there is one."""
    lines = [part for line in lines for part in line.replace("*/", "* /").split("\n")]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


# The nouns


def _resources(description: Description) -> str:
    """One file: a browser loads it in one request, and alike lines cost nearly nothing once they are compressed."""
    classes = "\n".join(text for noun in description.nouns for text in _classes(noun))
    nouns = "".join(
        (_comment([noun.doc], "    ") if noun.doc else "") + f"    this.{noun.word} = new {_class(noun.name)}(transport);\n"
        for noun in description.nouns
    )
    return (
        f'{HEAD}\nimport {{ path }} from "./path.js";\n\n'
        '/** @import { Page, Pages } from "./page.js" */\n'
        '/** @import { CallOptions, FollowOptions, Transport } from "./transport.js" */\n'
        '/** @import * as types from "./types.js" */\n\n'
        f"{classes}\n/** Every noun of the service. */\n"
        f"export class Nouns {{\n  /** @param {{Transport}} transport */\n  constructor(transport) {{\n{nouns}  }}\n}}\n"
    )


def _classes(noun: Noun) -> list[str]:
    inner = "".join(f"    this.{child.word} = new {_class(child.name)}(transport);\n" for child in noun.nouns)
    head = _comment([noun.doc]) if noun.doc else ""
    calls = "\n".join(_method(call) for call in noun.calls)
    own = (
        f"{head}export class {_class(noun.name)} {{\n  #transport;\n\n  /** @param {{Transport}} transport */\n"
        f"  constructor(transport) {{\n    this.#transport = transport;\n{inner}  }}\n\n{calls}}}\n"
    )
    return [text for child in noun.nouns for text in _classes(child)] + [own]


def _path(call: Call) -> str:
    return "path`" + call.path.replace("{", "${") + "`" if call.ids else f'"{call.path}"'


def _method(call: Call) -> str:
    parameters = [(field.name, "string", False) for field in call.ids]
    if call.body:
        parameters.append(("body", _outside(_type(call.body)), False))
    if call.filters:
        parameters.append(("query", f"types.{_query_name(call)}", not any(field.required for field in call.query)))
    parameters.append(("options", "FollowOptions" if call.stream else "CallOptions", True))
    names = ", ".join(name for name, _, _ in parameters)
    lines = [f"{call.summary}.", f"Access: {call.access}."]
    lines += [f"@param {{{type}}} {f'[{name}]' if optional else name}" for name, type, optional in parameters]
    if call.stream:
        lines.append(f"@returns {{AsyncGenerator<types.{_stream_name(call)}, void, undefined>}}")
        filters = ", query" if call.filters else ""
        body = f"this.#transport.follow({_path(call)}, options{filters})"
    elif call.page:
        lines.append(f"@returns {{Pages<{_page_type(call)}>}}")
        body = f"this.#transport.list({_path(call)}, query, options)"
    else:
        lines.append(f"@returns {{Promise<{_outside(_type(call.answer)) if call.answer else 'void'}>}}")
        given = [name for name, _, _ in parameters if name in ("body", "query")]
        given += ["takesKey: true"] if call.idempotent else []
        request = f"{{ {', '.join(given)} }}" if given else "{}"
        body = f'this.#transport.call("{call.method}", {_path(call)}, {request}, options)'
    # A bad id is an answer like any other.
    is_async = "" if call.stream or call.page else "async "
    return _comment(lines, "  ") + f"  {is_async}{call.verb}({names}) {{\n    return {body};\n  }}\n"


def _page_type(call: Call) -> str:
    assert call.page
    more = " | ".join(f'"{field.name}"' for field in call.page.more)
    page = f"Page<{_outside(_type(call.page.item))}>"
    return f"{page} & Pick<types.{call.page.record}, {more}>" if more else page


def _outside(type: str) -> str:
    """A type of `types.d.ts`, as other files name it."""
    return re.sub(r"\b(?!Record\b)[A-Z]\w+", r"types.\g<0>", type)


def _stream_name(call: Call) -> str:
    assert call.stream
    return call.stream.name


def _query_name(call: Call) -> str:
    is_plain = [field.name for field in call.query] == LIST_QUERY
    return "ListQuery" if is_plain else f"{_class(call.name)}Query"


# The types


def _types(description: Description) -> str:
    parts = [HEAD]
    for name, type in description.types.items():
        if type.sent or type.received:
            parts.append(_declared(description, type))
    for call in description.calls:
        if call.stream:
            parts.append(_streamed(description, call))
    queries = {_query_name(call): call for call in reversed(description.calls) if call.filters}
    for name, call in reversed(queries.items()):
        what = "What a list may be asked" if name == "ListQuery" else f"What `{call.name}` may be asked"
        parts.append(_comment([f"{what}."]) + _interface(name, call.filters, received=False))
    return "\n".join(parts)


def _declared(description: Description, type: Record | Choice | Union) -> str:
    match type:
        case Choice():
            meanings = [f"- `{value}`: {meaning}" for value, meaning in type.values if meaning]
            head = _comment([type.doc, *(["", *meanings] if meanings else [])])
            values = [json.dumps(value) for value, _ in type.values]
            return head + _alias(type.name, [*values, OTHERS])
        case Union():
            doc = type.doc + (f" A later server may send others: go by `{type.tag}`." if type.tag and type.received else "")
            return _comment([doc]) + _alias(type.name, [name for name, _ in type.members])
        case Record():
            head = _comment([type.doc]) if type.doc else ""
            return head + _interface(type.name, type.fields, type.received)


def _alias(name: str, members: list[str]) -> str:
    line = f"export type {name} = {' | '.join(members)};\n"
    if len(line) <= WIDTH:
        return line
    return f"export type {name} =\n" + "".join(f"  | {member}\n" for member in members).removesuffix("\n") + ";\n"


def _interface(name: str, fields: tuple[Field, ...], received: bool) -> str:
    return f"export interface {name} {{\n{_fields(fields, received, '  ')}}}\n"


def _fields(fields: tuple[Field, ...], received: bool, indent: str) -> str:
    text = ""
    for field in fields:
        if field.doc:
            text += _comment([field.doc], indent)
        # A tag stays closed: members of a union are told apart by it.
        is_open = received and field.name not in ("kind", "type")
        text += f"{indent}{field.name}{'' if field.required else '?'}: {_type(field.type, is_open, indent)};\n"
    return text


def _type(type: Type, received: bool = False, indent: str = "") -> str:
    return f"{_bare(type, received, indent)} | null" if type.nullable else _bare(type, received, indent)


def _bare(type: Type, received: bool, indent: str) -> str:
    match type.kind:
        case "text" | "id" | "time":
            return "string"
        case "integer" | "number":
            return "number"
        case "boolean" | "any":
            return type.kind
        case "constant":
            return json.dumps(type.value)
        case "named":
            return type.name
        case "list":
            inner = _type(type.of[0], received, indent)
            return f"({inner})[]" if " " in inner and "{" not in inner else f"{inner}[]"
        case "map":
            return f"Record<string, {_type(type.of[0], received, indent)}>"
        case "object":
            return f"{{\n{_fields(type.fields, received, indent + '  ')}{indent}}}"
        case "union":
            is_open = received and all(member.kind == "constant" for member in type.of)
            return " | ".join([*(_type(member, received, indent) for member in type.of), *([OTHERS] if is_open else [])])
    raise AssertionError(type)


def _streamed(description: Description, call: Call) -> str:
    """What a caller gets of a stream. The kinds are closed, so that a program can tell them apart by `kind`."""
    assert call.stream
    event = description.types[call.stream.event.name] if call.stream.event else None
    own = [event.name] if event else []
    if isinstance(event, Record):
        kinds = next(field.type.name for field in event.fields if field.name == "kind")
        choice = description.types[kinds]
        assert isinstance(choice, Choice)
        own = [f"({event.name} & {{ kind: {' | '.join(json.dumps(kind) for kind, _ in choice.values)} }})"]
    passing = [f'{{ kind: "{kind}"; data: {type.name} }}' for kind, type in call.stream.passing]
    doc = f"What `{call.name}` gives. A later server may send other kinds."
    return _comment([doc]) + _alias(_stream_name(call), [*own, *passing])
