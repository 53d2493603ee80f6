"""The table of calls (`calls_table.json`): for each call of the API description one request or several, with what a server
answers to it. Both clients run it against a server of their tests, so both send what is described.

Guarantees: every call stands in it, with each of its query parameters once; a body that may be one of several stands once
for each. Answers have every field of their types, and one that no client knows, as a later server may send.

Its form stands in `clients/README.md`.
"""

import json

from .description import Call, Choice, Description, Field, Record, Type, Union, Fault

TIME = "2026-11-25T09:30:12.043Z"
DEEPEST = 8
# Texts of a form. What has to be escaped in a path stands where any text may stand.
TEXTS = {
    "environment": "prod",
    "name": "a key/of ü?",
    "role": "standard",
    "version": "1.2.3",
    "label": "channel:e & mail",
    "requestId": "req-01980000-0000-7000-8000-000000000009",
}


def table(description: Description, document: dict) -> str:
    """The whole file."""
    rows = [row for call in description.calls for row in _rows(_Sampler(description), call, document)]
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def _rows(sampler: "_Sampler", call: Call, document: dict) -> list[dict]:
    ids = [TEXTS.get(field.name) or _uuid(number) for number, field in enumerate(call.ids, 1)]
    path = call.path
    for field, value in zip(call.ids, ids):
        path = path.replace(f"{{{field.name}}}", _escaped(value))
    row = {"call": call.name, "ids": ids, "request": f"{call.method} {path}"}
    bodies = _bodies(call, document)
    rows = [{**row, "body": body} for body in bodies] or [row]
    if call.query and not any(field.required for field in call.query):
        rows.append({**row, "query": {field.name: sampler.value(field.name, field.type) for field in call.query}})
    return [{**row, **_answer(sampler, call, row.get("query", {}), document)} for row in rows]


def _answer(sampler: "_Sampler", call: Call, query: dict, document: dict) -> dict:
    responses = document["paths"][call.path][call.method.lower()]["responses"]
    status = min(int(status) for status in responses if status < "300")
    if call.stream:
        return {"status": status, **sampler.stream(call, query.get("after", 0))}
    if call.page:
        # The last page: it has no cursor.
        page = sampler.record(call.page.record) | {"hasMore": False}
        del page["nextCursor"]
        return {"status": status, "answer": page}
    if call.answer:
        return {"status": status, "answer": sampler.value("answer", call.answer)}
    return {"status": status}


def _bodies(call: Call, document: dict) -> list[dict]:
    """The examples of the types that a body may have."""
    if not call.body:
        return []
    types = call.body.of if call.body.kind == "union" else (call.body,)
    schemas = [document["components"]["schemas"][type.name] for type in types]
    for type, schema in zip(types, schemas):
        if not schema.get("examples"):
            raise Fault(f"{call.name}: {type.name} has no example")
    return [example for schema in schemas for example in schema["examples"]]


def _escaped(text: str) -> str:
    """As a part of a path: everything but the unreserved characters of RFC 3986."""
    kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    return "".join(chr(byte) if chr(byte) in kept else f"%{byte:02X}" for byte in text.encode())


def _uuid(number: int) -> str:
    return f"01980000-0000-7000-8000-{number:012}"


class _Sampler:
    """Values of types: every field is there, null nowhere, each list has one element."""

    def __init__(self, description: Description):
        self.description = description

    def value(self, name: str, type: Type, depth: int = 0):
        match type.kind:
            case "text":
                return TEXTS.get(name, f"{name} & ü")
            case "id":
                return _uuid(9)
            case "time":
                return TIME
            case "integer":
                return 7
            case "number":
                return 0.25
            case "boolean":
                return True
            case "any":
                return {"any": [1, None]}
            case "constant":
                return type.value
            case "list" if depth > DEEPEST:
                return []
            case "list":
                return [self.value(name, type.of[0], depth + 1)]
            case "map":
                return {"key": self.value(name, type.of[0], depth + 1)}
            case "object":
                return self.fields(type.fields, depth)
            case "union":
                return self.value(name, type.of[0], depth)
            case "named":
                return self.named(type.name, depth)
        raise Fault(f"{name} has the type {type}")

    def named(self, name: str, depth: int):
        type = self.description.types[name]
        match type:
            case Choice():
                return type.values[0][0]
            case Union():
                return self.named(type.members[0][0], depth)
            case Record():
                return self.record(name, depth)

    def record(self, name: str, depth: int = 0) -> dict:
        type = self.description.types[name]
        assert isinstance(type, Record)
        # Types that only clients send stay as they are: unknown fields are refused.
        later = {"laterField": {"ofALaterServer": True}} if type.received else {}
        return {**self.fields(type.fields, depth), **later}

    def fields(self, fields: tuple[Field, ...], depth: int) -> dict:
        # What has itself in it ends where it may.
        kept = [field for field in fields if field.required or depth < DEEPEST]
        return {field.name: self.value(field.name, field.type, depth + 1) for field in kept}

    def stream(self, call: Call, after: int) -> dict:
        """The text of a whole stream after this number: an event of each kind, one of a kind that nobody knows, and of a run its end. Then
        the kinds that a caller sees."""
        assert call.stream
        event = self.description.types[call.stream.event.name] if call.stream.event else None
        if event is None:
            return self.hints(call)
        if isinstance(event, Union):
            events = [self.record(name) for name, _ in event.members]
        else:
            kinds = next(field.type.name for field in event.fields if field.name == "kind")
            choice = self.description.types[kinds]
            assert isinstance(choice, Choice)
            events = [{**self.record(event.name), "kind": kind} for kind, _ in choice.values]
        events.append({**events[0], "kind": "later.event", "data": {"of": "a later server"}})
        lines, kinds = ["retry: 2000\n\n"], []
        for kind, type in call.stream.passing:
            # Text and reasoning have no number; the place where a stream begins has one.
            data, number = self.named(type.name, 0), ""
            if kind.endswith(".delta"):
                data |= {"step": 1, "attempt": 1, "offset": 0}
            else:
                data, number = data | {"seq": after}, f"id: {after}\n"
            lines.append(f"{number}event: {kind}\ndata: {_line(data)}\n\n")
            kinds.append(kind)
        for number, event in enumerate(events, after + 1):
            event["seq"] = number
            lines.append(f"id: {number}\nevent: {event['kind']}\ndata: {_line(event)}\n\n: \n\n")
            kinds.append(event["kind"])
        if call.ids:
            lines.append('event: stream.end\ndata: {"reason":"run-finished"}\n\n')
        return {"stream": "".join(lines), "kinds": kinds}

    def hints(self, call: Call) -> dict:
        """The text of a stream in which nothing has a number: an event of each kind, and one of a kind that nobody knows."""
        told = [(kind, self.named(type.name, 0)) for kind, type in call.stream.passing]
        told.append(("later.hint", {"of": "a later server"}))
        lines = [f"event: {kind}\ndata: {_line(data)}\n\n" for kind, data in told]
        return {"stream": "".join(["retry: 2000\n\n", *lines]), "kinds": [kind for kind, _ in told]}


def _line(value: dict) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
