"""Small descriptions, and the Python that is written of them."""

import importlib
import json
import pathlib
import sys
import unittest
from typing import Any

CLIENTS = pathlib.Path(__file__).parents[2]


def generator(module: str) -> Any:
    sys.path.insert(0, str(CLIENTS))
    try:
        return importlib.import_module(f"generator.{module}")
    finally:
        sys.path.remove(str(CLIENTS))


def written(paths: dict[str, Any], **schemas: Any) -> dict[str, str]:
    """The files of a description, by their names in the package."""
    document = generator("tests").document(paths, **schemas)
    files = generator("python").files(generator("description").parse(json.dumps(document)), CLIENTS)
    return {path.removeprefix("python/agent_runtime/"): text for path, text in files.items()}


def operation(name: str, **fields: Any) -> Any:
    return generator("tests").operation(name, **fields)


def body(schema: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def object_of(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TEXT = {"type": "string"}
THING = object_of(["id"], id=TEXT, createdAt={"type": "string", "format": "date-time"})


class Written(unittest.TestCase):
    def test_names_are_those_of_python(self) -> None:
        parameter = {"name": "from", "in": "query", "required": False, "schema": TEXT}
        one = operation("bigThings.doIt", answer={"$ref": "#/components/schemas/Thing"}, parameters=[parameter])
        files = written({"/v1/big-things": {"get": one}}, Thing=THING)
        self.assertEqual(
            [name for name in files if "big" in name], ["resources/big_things.py", "resources/async_big_things.py"]
        )
        self.assertIn("    def do_it(self, *, from_: str | None = None, options:", files["resources/big_things.py"])
        self.assertIn('query={"from": from_}', files["resources/big_things.py"])
        self.assertIn("    async def do_it(", files["resources/async_big_things.py"])
        self.assertIn("    created_at: datetime | None\n", files["types.py"])
        self.assertIn("def big_things(self) -> BigThings:", files["resources/__init__.py"])

    def test_a_body_of_several_types_has_an_overload_for_each(self) -> None:
        several = {"anyOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}
        number = {"type": ["integer", "null"]}
        one = operation("things.make", **body(several))
        text = written({"/v1/things": {"post": one}}, A=object_of(["a"], a=TEXT), B=object_of(["b"], b=TEXT, c=number))[
            "resources/things.py"
        ]
        self.assertEqual(text.count("@overload"), 2)
        self.assertIn("    def make(self, *, a: str, options: CallOptions | None = None) -> None: ...\n", text)
        self.assertIn("*, b: str, c: int | Null | None = None, options", text)

    def test_objects_within_bodies_are_typed_by_the_names_of_the_api(self) -> None:
        inner = object_of(["envName"], envName=TEXT, much={"type": "number"})
        outer = object_of(["ref"], ref={"$ref": "#/components/schemas/Ref"})
        one = operation("things.make", **body({"$ref": "#/components/schemas/New"}))
        files = written({"/v1/things": {"post": one}}, New=outer, Ref=inner)
        self.assertIn("class RefInput(TypedDict):", files["inputs.py"])
        self.assertIn("    envName: str\n    much: NotRequired[float]\n", files["inputs.py"])
        self.assertIn("*, ref: inputs.RefInput, options", files["resources/things.py"])

    def test_a_name_that_would_hide_another_is_a_fault(self) -> None:
        fault = generator("description").Fault
        taken = operation("things.make", **body(object_of([], options=TEXT)))
        with self.assertRaisesRegex(fault, "two arguments of one name"):
            written({"/v1/things": {"post": taken}})
        raw = operation("things.get", answer={"$ref": "#/components/schemas/Thing"})
        with self.assertRaisesRegex(fault, "would hide Record.raw"):
            written({"/v1/things": {"get": raw}}, Thing=object_of(["raw"], raw=TEXT))

    def test_what_is_written_is_python(self) -> None:
        one = operation("things.get", answer={"$ref": "#/components/schemas/Thing"})
        odd = {**THING, "description": 'Has """quotes""", a \\ and `code`.'}
        for path, text in written({"/v1/things": {"get": one}}, Thing=odd).items():
            compile(text, path, "exec")
