"""The API description, as both generators read it: plain values, in the order of the document.

`parse(document(path))` gives a `Description`: `nouns` (a tree: `projects` has the calls `projects.list` … and the noun
`memberships`), `calls` (all of them, flat) and `types` (every schema, by its name).

Guarantees: a form that is not known here is a `Fault` that names its place, so nothing of the description is left out in
silence. Every reference leads to a type that is there.

Not here: names in a language, and text of a language (`typescript`, `python`).
"""

import dataclasses
import json
import pathlib
import re

# The specification names runtimes that send less than this one: before 0.1.3 no `usage`, before 0.1.6 no `agent`. So
# readers of these types have to expect their absence (sections 2.7 and 9).
ABSENT_IN_OLDER_RUNTIMES = {("Run", "usage"), ("Run", "agent"), ("WebhookRun", "usage"), ("WebhookRun", "agent")}
# What a stream says of itself. The core of each client acts on it; nobody else sees it.
OF_STREAMS = ("StreamEnd", "StreamReset")
IDEMPOTENCY_KEY = "Idempotency-Key"
# The number of the event after which a stream begins.
AFTER = "after"
# The same, for programs that can set no header. The clients can.
LAST_EVENT_ID = "lastEventId"


class Fault(Exception):
    """The description has something that is not known here; the text says where."""


@dataclasses.dataclass(frozen=True)
class Type:
    """The type of a value. `kind` is one of

    - `text`, `id` (a UUID as text), `time` (RFC 3339 as text), `integer`, `number`, `boolean`, `any` (any JSON);
    - `constant`: exactly `value`;
    - `named`: the type `name` of `Description.types`;
    - `list` and `map` (from texts): of `of[0]`;
    - `union`: one of `of`, which are at least two; `tag` is the field that tells them apart, or empty;
    - `object`: an object without a name, with `fields`.

    `nullable` adds null to any of them. A closed set of texts without a name is a union of constants.
    """

    kind: str
    name: str = ""
    of: tuple["Type", ...] = ()
    fields: tuple["Field", ...] = ()
    value: object = None
    tag: str = ""
    nullable: bool = False


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of an object, or a parameter. `required`: always there (sent) or always to be given. `doc` may be empty."""

    name: str
    type: Type
    required: bool
    doc: str


@dataclasses.dataclass(frozen=True)
class Record:
    """An object with a name. `sent` and `received`: it stands in a body, or in an answer, event or stream; maybe in both."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    sent: bool = False
    received: bool = False


@dataclasses.dataclass(frozen=True)
class Choice:
    """Texts with a name. Each client has it open: a later server may send others. `values`: (text, meaning) each."""

    name: str
    doc: str
    values: tuple[tuple[str, str], ...]
    sent: bool = False
    received: bool = False


@dataclasses.dataclass(frozen=True)
class Union:
    """One of several records with a name. `tag` is the field that tells them apart (empty: none), `members` are the names
    of types, each with its value of the tag (empty: none)."""

    name: str
    doc: str
    tag: str
    members: tuple[tuple[str, str], ...]
    sent: bool = False
    received: bool = False


@dataclasses.dataclass(frozen=True)
class Page:
    """An answer that is a page of a list: `item` is the type of a row, `record` the name of the page's own type, `more` its
    fields beside `data`, `hasMore` and `nextCursor` (the inbox has `counts`)."""

    item: Type
    record: str
    more: tuple[Field, ...]


@dataclasses.dataclass(frozen=True)
class Stream:
    """An answer that is a stream of server-sent events. `name` is that of what a caller gets. `event` is the type of what has a
    number (fields `seq`, `kind`, `createdAt`, `data`); None: nothing has one. `passing` has what has no place among them:
    (kind, type of its data) each, such as `text.delta` of a run and `stream.start` of the reviewers' stream. A caller sees
    both sorts alike: `kind` and `data`."""

    name: str
    event: Type | None
    passing: tuple[tuple[str, Type], ...]


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a client.

    `name` is `projects.memberships.add`, `verb` its last word, `noun` the words before. `path` has the ids in braces, as
    `ids` has them in order. `query` are the optional and required query parameters. `body` is the type of the body or None.
    Exactly one of these says what is answered: `answer` (a type), `page`, `stream`; none of them: nothing (204).
    `idempotent`: it takes an `Idempotency-Key`. `open`: it needs no credential. `public`: a public run token may do it.
    `access` says in words who may; `codes` are the error codes that it may answer.
    """

    name: str
    method: str
    path: str
    summary: str
    access: str
    ids: tuple[Field, ...]
    query: tuple[Field, ...]
    body: Type | None
    answer: Type | None
    page: Page | None
    stream: Stream | None
    idempotent: bool
    open: bool
    public: bool
    codes: tuple[str, ...]

    @property
    def verb(self) -> str:
        return self.name.rsplit(".", 1)[1]

    @property
    def noun(self) -> str:
        return self.name.rsplit(".", 1)[0]

    @property
    def filters(self) -> tuple[Field, ...]:
        """The query without where a stream begins, which is for the core of a client."""
        return tuple(field for field in self.query if not self.stream or field.name != AFTER)


@dataclasses.dataclass(frozen=True)
class Noun:
    """A noun: `name` is `projects.memberships`, `word` its last word. Its calls, and the nouns within it."""

    name: str
    doc: str
    calls: tuple[Call, ...]
    nouns: tuple["Noun", ...]

    @property
    def word(self) -> str:
        return self.name.rsplit(".", 1)[-1]


@dataclasses.dataclass(frozen=True)
class Description:
    """The whole. `version` is the server's; `webhook` the name of the union of webhook events."""

    version: str
    calls: tuple[Call, ...]
    nouns: tuple[Noun, ...]
    types: dict[str, Record | Choice | Union]
    webhook: str

    def fields(self, type: Type) -> tuple[Field, ...]:
        """The fields of a body. Of a union the fields of all its members, each once: required where it is in all."""
        if type.kind == "object":
            return type.fields
        if type.kind == "named":
            named = self.types[type.name]
            if isinstance(named, Record):
                return named.fields
            if isinstance(named, Union):
                return self.fields(Type("union", of=tuple(Type("named", name=name) for name, _ in named.members)))
        if type.kind != "union":
            raise Fault(f"a body of the type {type} has no fields")
        merged: dict[str, Field] = {}
        members = [{field.name: field for field in self.fields(member)} for member in type.of]
        for member in members:
            for name, field in member.items():
                required = all(name in other and other[name].required for other in members)
                merged.setdefault(name, dataclasses.replace(field, required=required))
        return tuple(merged.values())


def words(name: str) -> list[str]:
    """The words of a camel-case name, in small letters: `teamGrants` is `team`, `grants`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def parse(text: str) -> Description:
    """Reads the description from JSON. A fault is a `Fault`."""
    return _Reader(json.loads(text)).description()


def document(path: pathlib.Path) -> str:
    """The description's JSON in a file: the whole, or the snapshot of the tests, whose head ends with the second line of
    dashes."""
    text = path.read_text(encoding="utf-8")
    return text.split("\n---\n", 1)[1] if text.startswith("---\n") else text


_SCALARS = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}
_FORMATS = {"date-time": "time", "uuid": "id"}
# Bounds and examples, which the server checks: they do not change the type.
_BOUNDS = {
    "description", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
    "maxProperties", "propertyNames", "default", "examples", "writeOnly", "uniqueItems",
}
_ANY = Type("any")


def _named(reference: str) -> str:
    return reference.rsplit("/", 1)[1]


def _nullable(type: Type) -> Type:
    return dataclasses.replace(type, nullable=True)


class _Reader:
    """Reads one document. Each function gets the place of what it reads, for a fault."""

    def __init__(self, document: dict):
        self.document = document
        self.schemas = document["components"]["schemas"]

    def description(self) -> Description:
        calls = tuple(
            self.call(method.upper(), path, operation)
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
        )
        webhook = self.document["webhooks"]["event"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        types = {name: self.schema(name, schema) for name, schema in self.schemas.items()}
        sent = {name for call in calls if call.body for name in _names(call.body)}
        sent |= {name for call in calls for parameter in call.query for name in _names(parameter.type)}
        received = {name for call in calls for name in _answered(call)} | {_named(webhook["$ref"]), "Error"}
        sent, received = _reached(types, sent), _reached(types, received)
        for name, type in types.items():
            types[name] = dataclasses.replace(type, sent=name in sent, received=name in received)
        docs = {tag["name"]: tag.get("description", "") for tag in self.document["tags"]}
        tags = {}
        for path in self.document["paths"].values():
            for operation in path.values():
                tags.setdefault(operation["operationId"].split(".")[0], operation["tags"][0])
        return Description(
            version=self.document["info"]["version"],
            calls=calls,
            nouns=_nouns(calls, {noun: docs.get(tag, "") for noun, tag in tags.items()}),
            types=types,
            webhook=_named(webhook["$ref"]),
        )

    def call(self, method: str, path: str, operation: dict) -> Call:
        name = operation["operationId"]
        parameters = {"path": [], "query": [], "header": []}
        for parameter in operation["parameters"]:
            schema = self.type(f"{name}({parameter['name']})", parameter["schema"])
            field = Field(parameter["name"], schema, parameter["required"], parameter.get("description", ""))
            parameters[parameter["in"]].append(field)
        written = tuple(re.findall(r"{(\w+)}", path))
        if written != tuple(field.name for field in parameters["path"]):
            raise Fault(f"{name}: the path is {path}, and its parameters are others")
        body = operation.get("requestBody")
        if body:
            body = self.type(f"{name}: body", body["content"]["application/json"]["schema"])
        answer, page, stream = self.answered(name, operation)
        codes = [
            code
            for status, response in operation["responses"].items()
            if status >= "400"
            for code in response["description"].split(", ")
        ]
        security = operation["security"]
        return Call(
            name=name,
            method=method,
            path=path,
            summary=operation["summary"],
            access=operation["description"].removeprefix("Access: ").removesuffix("."),
            ids=tuple(parameters["path"]),
            query=tuple(field for field in parameters["query"] if not (stream and field.name == LAST_EVENT_ID)),
            body=body,
            answer=answer,
            page=page,
            stream=stream,
            idempotent=any(field.name == IDEMPOTENCY_KEY for field in parameters["header"]),
            open=not security,
            public=any("publicRunToken" in one for one in security),
            codes=tuple(codes),
        )

    def answered(self, name: str, operation: dict) -> tuple[Type | None, Page | None, Stream | None]:
        contents = [
            response["content"]
            for status, response in operation["responses"].items()
            if status < "300" and "content" in response
        ]
        if not contents:
            return None, None, None
        if any(content != contents[0] for content in contents):
            raise Fault(f"{name} answers different types")
        (media, content), *_ = contents[0].items()
        if media == "text/event-stream":
            return None, None, self.stream(name, content["schema"])
        if media != "application/json":
            raise Fault(f"{name} answers {media}")
        answer = self.type(f"{name}: answer", content["schema"])
        page = self.page(answer)
        return (None, page, None) if page else (answer, None, None)

    def page(self, answer: Type) -> Page | None:
        properties = self.schemas.get(answer.name, {}).get("properties", {})
        if not {"data", "hasMore", "nextCursor"} <= properties.keys():
            return None
        fields = {field.name: field for field in self.fields(answer.name, self.schemas[answer.name])}
        more = tuple(field for name, field in fields.items() if name not in ("data", "hasMore", "nextCursor"))
        return Page(item=fields["data"].type.of[0], record=answer.name, more=more)

    def stream(self, name: str, schema: dict) -> Stream:
        whole = _named(schema["$ref"])
        if not whole.endswith("Data"):
            raise Fault(f"{name}: the type of the stream is no data, but {whole}")
        members = [_named(member["$ref"]) for member in self.schemas[whole]["anyOf"]]
        told = [member for member in members if member not in OF_STREAMS]
        numbered = [member for member in told if member.endswith("Event")]
        if len(numbered) > 1 or numbered != told[: len(numbered)]:
            raise Fault(f"{name}: the events of the stream are {told}")
        others = told[len(numbered) :]
        passing = tuple((".".join(words(other)), Type("named", name=other)) for other in others)
        event = Type("named", name=numbered[0]) if numbered else None
        return Stream(name=whole.removesuffix("Data") + "Event", event=event, passing=passing)

    def schema(self, name: str, schema: dict) -> Record | Choice | Union:
        doc = schema.get("description", "")
        if "enum" in schema:
            meanings = dict(re.findall(r"^- `([^`]+)`: (.+)$", doc, re.MULTILINE))
            doc = doc.split("\n\n- `", 1)[0]
            return Choice(name, doc, tuple((value, meanings.get(value, "")) for value in schema["enum"]))
        members = schema.get("oneOf") or schema.get("anyOf")
        if members:
            tags = {
                _named(reference): tag
                for tag, reference in schema.get("discriminator", {}).get("mapping", {}).items()
            }
            names = [_named(member["$ref"]) for member in members]
            tag = schema.get("discriminator", {}).get("propertyName", "")
            return Union(name, doc, tag, tuple((member, tags.get(member, "")) for member in names))
        if schema.get("type") != "object":
            raise Fault(f"{name} is no object, no enum and no union: {schema}")
        return Record(name, doc, self.fields(name, schema))

    def fields(self, place: str, schema: dict) -> tuple[Field, ...]:
        required = schema.get("required", [])
        return tuple(
            Field(
                name,
                self.type(f"{place}.{name}", field),
                name in required and (place, name) not in ABSENT_IN_OLDER_RUNTIMES,
                field.get("description", ""),
            )
            for name, field in schema.get("properties", {}).items()
        )

    def type(self, place: str, schema: dict) -> Type:
        if "$ref" in schema:
            return self.reference(place, schema["$ref"])
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self.union(place, schema[keyword], schema.get("discriminator", {}).get("propertyName", ""))
        if "const" in schema:
            return Type("constant", value=schema["const"])
        if "enum" in schema:
            constants = tuple(Type("constant", value=value) for value in schema["enum"] if value is not None)
            return Type("union", of=constants, nullable=None in schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, list):
            others = [one for one in kind if one != "null"]
            if len(others) != 1:
                raise Fault(f"{place} has the types {kind}")
            return _nullable(self.type(place, {**schema, "type": others[0]}))
        if kind is None:
            if schema.keys() - _BOUNDS:
                raise Fault(f"{place} has no type, and says {sorted(schema)}")
            return _ANY
        known = {"type", "items", "properties", "required", "additionalProperties"} | _BOUNDS
        if schema.keys() - known:
            raise Fault(f"{place} says {sorted(schema.keys() - known)}")
        if kind in _SCALARS:
            return Type(_FORMATS.get(schema.get("format"), _SCALARS[kind]))
        if kind == "array":
            return Type("list", of=(self.type(f"{place}[]", schema.get("items", {})),))
        if kind == "object" and "properties" in schema:
            return Type("object", fields=self.fields(place, schema))
        if kind == "object":
            return Type("map", of=(self.type(f"{place}{{}}", schema.get("additionalProperties") or {}),))
        raise Fault(f"{place} has the type {kind}")

    def reference(self, place: str, reference: str) -> Type:
        name = _named(reference)
        if name not in self.schemas:
            raise Fault(f"{place} is {name}, which the description does not have")
        return Type("named", name=name)

    def union(self, place: str, members: list[dict], tag: str) -> Type:
        others = [member for member in members if member != {"type": "null"}]
        types = tuple(self.type(f"{place}|{number}", member) for number, member in enumerate(others))
        union = types[0] if len(types) == 1 else Type("union", of=types, tag=tag)
        return _nullable(union) if len(others) < len(members) else union


def _names(type: Type) -> set[str]:
    """The names in a type."""
    within = [name for inner in type.of for name in _names(inner)]
    within += [name for field in type.fields for name in _names(field.type)]
    return {type.name, *within} - {""}


def _answered(call: Call) -> set[str]:
    if call.page:
        return {call.page.record}
    if call.stream:
        of_event = _names(call.stream.event) if call.stream.event else set()
        return of_event | {name for _, type in call.stream.passing for name in _names(type)}
    return _names(call.answer) if call.answer else set()


def _reached(types: dict, begin: set[str]) -> set[str]:
    """The names that these lead to, themselves included."""
    reached, waiting = set(), list(begin)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        type = types[name]
        if isinstance(type, Record):
            waiting += [inner for field in type.fields for inner in _names(field.type)]
        elif isinstance(type, Union):
            waiting += [member for member, _ in type.members]
    return reached


def _nouns(calls: tuple[Call, ...], docs: dict[str, str], within: str = "") -> tuple[Noun, ...]:
    """The nouns directly within one, in the order of their first calls."""
    depth = within.count(".") + 1 if within else 0
    inside = [call.noun for call in calls if not within or call.noun.startswith(f"{within}.")]
    names = dict.fromkeys(".".join(noun.split(".")[: depth + 1]) for noun in inside)
    return tuple(
        Noun(
            name=name,
            doc=docs.get(name, ""),
            calls=tuple(call for call in calls if call.noun == name),
            nouns=_nouns(calls, docs, name),
        )
        for name in names
    )
