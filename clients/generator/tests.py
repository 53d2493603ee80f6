"""Small descriptions, and what is read of them and written. `python3 -m unittest generator.tests`, in `clients`."""

import copy
import json
import unittest

from . import description, table, typescript

ERROR = {"$ref": "#/components/responses/NotFound", "description": "not-found"}


def operation(name, **fields):
    answer = fields.pop("answer", None)
    media = fields.pop("media", "application/json")
    content = {"content": {media: {"schema": answer}}} if answer else {}
    return {
        "operationId": name, "tags": ["a"], "summary": "Do it", "description": "Access: read on a.", "parameters": [],
        "security": [{"bearer": []}], "responses": {"200": {"description": "Success", **content}, "404": ERROR}, **fields,
    }


def in_path(name):
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}


def document(paths, **schemas):
    schemas = {
        "Error": {"type": "object", "properties": {}},
        "Event": {"type": "object", "properties": {"type": {"type": "string", "const": "x"}}},
        **schemas,
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}}}
    return {
        "info": {"version": "1.2.3"}, "tags": [{"name": "a", "description": "The things."}], "paths": paths,
        "webhooks": {"event": {"post": {"requestBody": body}}}, "components": {"schemas": schemas},
    }


def read(paths, **schemas):
    return description.parse(json.dumps(document(paths, **schemas)))


def one(**fields):
    """The call of a description that has one, and the description."""
    schemas = fields.pop("schemas", {})
    path = fields.pop("path", "/v1/things")
    found = read({path: {fields.pop("method", "get"): operation(fields.pop("name", "things.do"), **fields)}}, **schemas)
    return found.calls[0], found


THING = {
    "type": "object", "required": ["id", "note"],
    "properties": {
        "id": {"type": "string", "format": "uuid"}, "note": {"type": ["string", "null"], "description": "What */ of it."},
        "at": {"type": "string", "format": "date-time"}, "kinds": {"type": "array", "items": {"$ref": "#/components/schemas/Kind"}},
    },
}
KIND = {"type": "string", "description": "A kind.\n\n- `a`: The first.\n- `b`: The second.", "enum": ["a", "b"]}


class Reading(unittest.TestCase):
    def test_nouns_stand_within_each_other(self):
        paths = {"/a": {"get": operation("things.parts.list")}, "/b": {"get": operation("things.get"), "put": operation("others.put")}}
        things, others = read(paths).nouns
        self.assertEqual([things.word, things.doc, things.calls[0].verb], ["things", "The things.", "get"])
        self.assertEqual([things.nouns[0].name, things.nouns[0].calls[0].name], ["things.parts", "things.parts.list"])
        self.assertEqual(others.calls[0].method, "PUT")

    def test_a_call_has_its_parameters_and_its_codes(self):
        order = {"name": "order", "in": "query", "required": False, "description": "How.", "schema": {"$ref": "#/components/schemas/Kind"}}
        key = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"}}
        call, _ = one(path="/v1/things/{thingId}", parameters=[in_path("thingId"), order, key], schemas={"Kind": KIND})
        self.assertEqual([call.ids[0].name, call.ids[0].type.kind], ["thingId", "id"])
        self.assertEqual([call.query[0].name, call.query[0].type.name, call.query[0].required], ["order", "Kind", False])
        self.assertEqual([call.idempotent, call.codes, call.access], [True, ("not-found",), "read on a"])
        self.assertEqual([call.answer, call.page, call.stream], [None, None, None])

    def test_types_keep_what_may_be_null_and_what_may_be_absent(self):
        _, found = one(answer={"$ref": "#/components/schemas/Thing"}, schemas={"Thing": THING, "Kind": KIND})
        thing = found.types["Thing"]
        fields = {field.name: field for field in thing.fields}
        self.assertEqual([fields["note"].type.nullable, fields["note"].required, fields["at"].required], [True, True, False])
        self.assertEqual([fields["at"].type.kind, fields["kinds"].type.of[0].name], ["time", "Kind"])
        self.assertEqual([thing.received, thing.sent, found.types["Kind"].received], [True, False, True])
        self.assertEqual(found.types["Kind"].values, (("a", "The first."), ("b", "The second.")))

    def test_what_older_runtimes_leave_out_is_optional(self):
        run = {"type": "object", "required": ["id", "usage"], "properties": {"id": {"type": "string"}, "usage": {"type": "object"}}}
        _, found = one(answer={"$ref": "#/components/schemas/Run"}, schemas={"Run": run})
        self.assertEqual([field.required for field in found.types["Run"].fields], [True, False])

    def test_a_page_is_a_page_and_a_stream_a_stream(self):
        page = {
            "type": "object", "properties": {
                "data": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}, "hasMore": {"type": "boolean"},
                "nextCursor": {"type": ["string", "null"]}, "counts": {"type": "object"},
            },
        }
        schemas = {"ThingPage": page, "Thing": THING, "Kind": KIND}
        call, _ = one(answer={"$ref": "#/components/schemas/ThingPage"}, schemas=schemas)
        self.assertEqual([call.page.item.name, [field.name for field in call.page.more]], ["Thing", ["counts"]])
        names = ("ThingEvent", "TextDelta", "StreamEnd")
        schemas = {name: {"type": "object"} for name in names}
        schemas["ThingStreamData"] = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]}
        answer = {"$ref": "#/components/schemas/ThingStreamData"}
        call, _ = one(answer=answer, media="text/event-stream", schemas=schemas)
        self.assertEqual([call.stream.event.name, [kind for kind, _ in call.stream.passing]], ["ThingEvent", ["text.delta"]])
        self.assertEqual(call.stream.name, "ThingStreamEvent")
        schemas["ThingStreamData"]["anyOf"].pop(0)
        call, _ = one(answer=answer, media="text/event-stream", schemas=schemas)
        self.assertEqual([call.stream.event, [kind for kind, _ in call.stream.passing]], [None, ["text.delta"]])

    def test_a_body_of_several_has_the_fields_of_all(self):
        first = {"type": "object", "required": ["a", "both"], "properties": {"a": {"type": "string"}, "both": {"type": "string"}}}
        second = {"type": "object", "required": ["both"], "properties": {"both": {"type": "string"}, "b": {"type": "integer"}}}
        schema = {"anyOf": [{"$ref": "#/components/schemas/First"}, {"$ref": "#/components/schemas/Second"}]}
        body = {"content": {"application/json": {"schema": schema}}}
        call, found = one(method="post", requestBody=body, schemas={"First": first, "Second": second})
        fields = [(field.name, field.required) for field in found.fields(call.body)]
        self.assertEqual(fields, [("a", False), ("both", True), ("b", False)])

    def test_what_is_not_known_is_a_fault_with_its_place(self):
        for fields, said in [
            ({"answer": {"type": "string"}, "media": "text/csv"}, "things.do answers text/csv"),
            ({"path": "/v1/things/{thingId}"}, "the path is"),
            ({"answer": {"$ref": "#/components/schemas/Missing"}}, "Missing"),
            ({"answer": {"type": "string", "if": {}}}, "says ['if']"),
            ({"answer": {"type": ["string", "integer"]}}, "has the types"),
            ({"answer": {"allOf": []}}, "has no type"),
            ({"schemas": {"Odd": {"type": "string"}}}, "Odd is no object"),
        ]:
            with self.subTest(said), self.assertRaises(description.Fault) as raised:
                one(**copy.deepcopy(fields))
            self.assertIn(said, str(raised.exception))

    def test_words_of_a_name(self):
        self.assertEqual(description.words("teamGrants"), ["team", "grants"])
        self.assertEqual(description.words("TextDelta"), ["text", "delta"])


class Writing(unittest.TestCase):
    def test_types_in_typescript(self):
        _, found = one(answer={"$ref": "#/components/schemas/Thing"}, schemas={"Thing": THING, "Kind": KIND})
        text = typescript._types(found)
        self.assertIn('export type Kind = "a" | "b" | (string & {});\n', text)
        self.assertIn("export interface Thing {\n  id: string;\n  /** What * / of it. */\n  note: string | null;\n", text)
        self.assertIn("  at?: string;\n  kinds?: Kind[];\n}\n", text)

    def test_a_call_in_typescript(self):
        _, found = one(
            name="things.parts.do", path="/v1/things/{thingId}", method="delete", parameters=[in_path("thingId")]
        )
        text = typescript._resources(found)
        self.assertIn("export class ThingsParts {", text)
        self.assertIn('  async do(thingId, options) {\n    return this.#transport.call("DELETE", path`/v1/things/${thingId}`, {}, options);\n  }\n', text)
        self.assertIn("    this.parts = new ThingsParts(transport);\n", text)

    def test_a_body_without_an_example_is_in_no_table(self):
        body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}
        made = document({"/v1/things": {"post": operation("things.do", requestBody=body)}}, Thing=THING, Kind=KIND)
        with self.assertRaises(description.Fault) as raised:
            table.table(description.parse(json.dumps(made)), made)
        self.assertIn("Thing has no example", str(raised.exception))
        made["components"]["schemas"]["Thing"]["examples"] = [{"note": None}]
        row = json.loads(table.table(description.parse(json.dumps(made)), made))[0]
        self.assertEqual(row, {"call": "things.do", "ids": [], "request": "POST /v1/things", "body": {"note": None}, "status": 200})
