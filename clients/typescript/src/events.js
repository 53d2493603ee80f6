/**
 * Server-sent events as text, and what a reader of a stream has had. Pure: bytes come from `follow.js`.
 *
 * Guarantees: events are read as WHATWG says, however the text is cut into pieces; a half event at the end of a connection
 * is dropped. Each numbered event is let through once, and of text only what has not come.
 */

import { AgentRuntimeError } from "./errors.js";

/** @typedef {{ id: string, event: string, data: string }} ServerSentEvent */

const MOST_CHARACTERS = 32 * 1024 * 1024;

/** Cuts one connection's text into events. */
export class EventParser {
  #rest = "";
  #endedWithReturn = false;
  #id = "";
  #event = "";
  /** @type {string[]} */
  #data = [];
  /** The pause before coming back that the server asks for. @type {number | undefined} */
  retryMs;

  /**
   * The events that end in this piece.
   * @param {string} text
   */
  push(text) {
    if (text === "") return [];
    if (this.#endedWithReturn && text[0] === "\n") text = text.slice(1);
    if ((this.#endedWithReturn = text.endsWith("\r")) || text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
    // What was kept has no end of a line.
    let at = this.#rest.length;
    let from = 0;
    text = this.#rest + text;
    /** @type {ServerSentEvent[]} */
    const events = [];
    for (let to; (to = text.indexOf("\n", at)) >= 0; at = from = to + 1) {
      if (to > from) this.#line(text.slice(from, to));
      else this.#end(events);
    }
    this.#rest = text.slice(from);
    if (this.#rest.length > MOST_CHARACTERS) throw new AgentRuntimeError("protocol", "The stream has a line without end.");
    return events;
  }

  /** @param {string} line */
  #line(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d{1,6}$/.test(value)) this.retryMs = Number(value);
  }

  /** @param {ServerSentEvent[]} events */
  #end(events) {
    // An id holds for its own event alone, so that what has none is told apart. The standard has it hold on.
    if (this.#data.length) events.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
    this.#event = "";
    this.#id = "";
    this.#data = [];
  }
}

/** What a reader has had of a stream, over all its connections. */
export class Place {
  /** The number of the last event. @type {number | undefined} */
  after;
  /** The stream has told where it begins. */
  #hasBegun = false;
  /** The step and attempt that text comes of, and how many of its characters have come. */
  #step = 0;
  #attempt = 0;
  #characters = 0;

  /** @param {number} [after] */
  constructor(after) {
    this.after = after;
  }

  /**
   * What the caller gets of an event: nothing of what has come before.
   * @param {ServerSentEvent} event
   * @returns {any}
   */
  take({ id, event, data }) {
    let said;
    try {
      said = JSON.parse(data);
    } catch (cause) {
      throw new AgentRuntimeError("protocol", `The data of an event ${event} is not JSON.`, { cause });
    }
    const number = /^\d+$/.test(id) ? Number(id) : undefined;
    if (number === undefined) return event === "text.delta" ? this.#text(said) : { kind: event, data: said };
    const isNew = this.after === undefined || number > this.after;
    if (event === "stream.start") {
      const isFirst = !this.#hasBegun;
      this.#hasBegun = true;
      this.after ??= number;
      return isFirst ? { kind: event, data: said } : undefined;
    }
    if (!isNew) return undefined;
    this.after = number;
    const { step, attempt } = said?.data ?? {};
    if (typeof step === "number") this.#open(step, event === "step.completed" ? Infinity : attempt);
    return said;
  }

  /**
   * Text of an attempt before this one is void.
   * @param {number} step
   * @param {number} attempt
   */
  #open(step, attempt) {
    if (step < this.#step || (step === this.#step && !(attempt > this.#attempt))) return;
    this.#step = step;
    this.#attempt = attempt ?? 0;
    this.#characters = 0;
  }

  /** @param {{ step: number, attempt: number, offset: number, text: string }} delta */
  #text(delta) {
    this.#open(delta.step, delta.attempt);
    if (delta.step !== this.#step || delta.attempt !== this.#attempt) return undefined;
    const had = this.#characters - delta.offset;
    const characters = [...delta.text];
    if (had >= characters.length) return undefined;
    this.#characters = delta.offset + characters.length;
    return { kind: "text.delta", data: had > 0 ? { ...delta, offset: delta.offset + had, text: characters.slice(had).join("") } : delta };
  }
}
