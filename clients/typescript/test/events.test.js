import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, Place } from "../src/events.js";
import { random } from "./support.js";

/** Everything that a parser finds in these pieces. */
const parsed = (...pieces) => {
  const parser = new EventParser();
  return { events: pieces.flatMap((piece) => parser.push(piece)), retryMs: parser.retryMs };
};
const event = (data, event = "message", id = "") => ({ id, event, data });

test("events are read as the standard says", () => {
  for (const [text, ...wanted] of [
    ["data: a\n\n", event("a")],
    ["data:a\n\n", event("a")],
    ["data:  a\n\n", event(" a")],
    ["data\n\n", event("")],
    ["data: a\ndata: b\n\n", event("a\nb")],
    [": a comment\n\n:\n\n"],
    ["event: kind\n\n"],
    ["event: kind\nid: 7\ndata: a\n\n", event("a", "kind", "7")],
    ["id: 7\ndata: a\n\ndata: b\n\n", event("a", "message", "7"), event("b")],
    ["id: 7\0\ndata: a\n\n", event("a")],
    ["unknown: x\ndata: a\n\n", event("a")],
    ["data: a\r\n\r\ndata: b\r\r", event("a"), event("b")],
    ["data: half\n"],
    ["data: whole\n\ndata: half", event("whole")],
  ])
    assert.deepEqual(parsed(text).events, wanted, JSON.stringify(text));
  assert.equal(parsed("retry: 2000\n\n").retryMs, 2000);
  assert.equal(parsed("retry: soon\n\n").retryMs, undefined);
});

test("it does not matter how the text is cut, whichever ends its lines have", () => {
  const lines = "retry: 5\n\nid: 1\nevent: a\ndata: {\"x\":\"ü👋\"}\n\n: \n\ndata: 1\ndata: 2\n\nid: 2\ndata: z\n\n";
  const chance = random(1);
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = lines.replaceAll("\n", end);
    const whole = parsed(text);
    for (let round = 0; round < 500; round++) {
      const pieces = [];
      for (let rest = text; rest; ) {
        const length = 1 + Math.floor(chance() * 9);
        pieces.push(rest.slice(0, length));
        rest = rest.slice(length);
      }
      assert.deepEqual(parsed(...pieces), whole, JSON.stringify(pieces));
    }
  }
});

test("a line without end is refused", () => {
  const parser = new EventParser();
  const piece = "x".repeat(16 * 1024 * 1024);
  parser.push(piece);
  assert.throws(() => [parser.push(piece), parser.push(piece)], { code: "protocol" });
});

const numbered = (seq, kind = "step.started", data = {}) =>
  ({ id: String(seq), event: kind, data: JSON.stringify({ seq, kind, data }) });
const delta = (offset, text, step = 1, attempt = 1) =>
  ({ id: "", event: "text.delta", data: JSON.stringify({ step, attempt, offset, text }) });

test("a numbered event is let through once", () => {
  const place = new Place();
  assert.equal(place.take(numbered(1)).seq, 1);
  assert.equal(place.take(numbered(1)), undefined);
  assert.equal(place.take(numbered(2)).seq, 2);
  assert.equal(place.take(numbered(1)), undefined);
  assert.equal(place.after, 2);
  assert.equal(new Place(5).take(numbered(5)), undefined);
});

test("of text comes what has not come, by code points", () => {
  const place = new Place();
  const text = (event) => place.take(event)?.data;
  assert.equal(text(delta(0, "Grü👋")).text, "Grü👋");
  assert.equal(text(delta(4, " b")).text, " b");
  // After a reconnect the text begins again.
  assert.equal(text(delta(0, "Grü👋")), undefined);
  assert.deepEqual(text(delta(2, "ü👋 bc")), { step: 1, attempt: 1, offset: 6, text: "c" });
  // A piece is missing: the reader learns of it by the offset.
  assert.equal(text(delta(9, "z")).offset, 9);
});

test("text of an attempt that is over is void", () => {
  const place = new Place();
  assert.ok(place.take(delta(0, "first", 1, 1)));
  place.take(numbered(3, "step.restarted", { step: 1, attempt: 2 }));
  assert.equal(place.take(delta(5, " late", 1, 1)), undefined);
  assert.equal(place.take(delta(0, "second", 1, 2)).data.text, "second");
  place.take(numbered(4, "step.completed", { step: 1, attempt: 2 }));
  assert.equal(place.take(delta(6, " late", 1, 2)), undefined);
  assert.equal(place.take(delta(0, "next", 2, 1)).data.text, "next");
});

test("a reviewer's stream says once where it begins", () => {
  const place = new Place();
  const start = { id: "41", event: "stream.start", data: '{"seq":41}' };
  assert.deepEqual(place.take(start), { kind: "stream.start", data: { seq: 41 } });
  assert.equal(place.after, 41);
  assert.equal(place.take(numbered(42)).seq, 42);
  assert.equal(place.take({ ...start, id: "42" }), undefined);
  assert.equal(place.after, 42);
});

test("what is no JSON is a fault of the server, and what nobody knows is an event", () => {
  assert.throws(() => new Place().take({ id: "1", event: "a", data: "{" }), { code: "protocol" });
  assert.deepEqual(new Place().take({ id: "", event: "later.kind", data: "[1]" }), { kind: "later.kind", data: [1] });
  assert.deepEqual(new Place().take({ id: "1", event: "later.kind", data: "null" }), null);
});
