/** How a model provider's server is asked: time limits, tries, calls at once, headers, and what it does not take. */

import { Check, Field, Select, faultAt } from "../components/field.js";
import { typedNumber } from "../number.js";
import { fragment, h, tags } from "../ui.js";

/** @import { ModelProviderOptions, ModelQuirk } from "agent-runtime/types" */
/** @import { AgentRuntimeError } from "agent-runtime" */

const { button, details, div, fieldset, legend, p, summary } = tags;

const TIMES = /** @type {const} */ ([
  ["firstByteMs", "First byte within", "A server that loads its model is waited for as long in all."],
  ["idleMs", "Next byte within", "Comments and pings count."],
  ["callMs", "Whole answer within", ""],
]);

/** By what a reader of the server's documentation looks for. */
export const QUIRKS = /** @type {Record<ModelQuirk, string>} */ ({
  "no-streaming": "It does not stream",
  "no-stream-options": "It refuses stream_options",
  "no-system-role": "It has no system role",
  "no-null-content": "It refuses a message whose content is null",
  "no-tool-choice": "It refuses tool_choice",
  "no-parallel-tool-calls": "It refuses parallel_tool_calls",
  "no-strict": "It refuses strict",
  "no-json-schema": "It refuses the response format json_schema",
  "no-response-format": "It refuses every response format",
  "no-temperature": "It takes its own temperature alone",
  "no-top-p": "It refuses top_p",
  "no-penalties": "It refuses penalties",
  "no-seed": "It refuses seed",
  "no-reasoning-effort": "It refuses reasoning_effort",
  "no-kept": "It refuses fields that it wrote itself",
  "max-completion-tokens": "It takes max_completion_tokens in place of max_tokens",
});

/** A header as it is typed. @typedef {{ name: string, way: string, text: string }} TypedHeader */
/** Options as they are typed; times in seconds. @typedef {{ times: Record<string, string>, tries: string, callsAtOnce: string, keyHeader: string, apiVersion: string, headers: TypedHeader[], quirks: ModelQuirk[] }} TypedOptions */

/** @param {ModelProviderOptions | undefined} options @returns {TypedOptions} */
export function typedOptions(options) {
  const text = (/** @type {number | null | undefined} */ value) => (value === undefined || value === null ? "" : String(value));
  const times = TIMES.map(([key]) => {
    const ms = options?.timeouts?.[key];
    return [key, text(ms && ms / 1000)];
  });
  const headers = (options?.headers ?? []).map(({ name, value, keyName }) => ({ name, way: keyName ? "key" : "value", text: keyName ?? value ?? "" }));
  return { times: Object.fromEntries(times), tries: text(options?.tries), callsAtOnce: text(options?.callsAtOnce), keyHeader: options?.keyHeader ?? "", apiVersion: options?.apiVersion ?? "", headers, quirks: [...(options?.quirks ?? [])] };
}

/** A whole number as it is typed, so many times. @param {string} text @param {number} by */
function whole(text, by = 1) {
  const value = typedNumber(text);
  return typeof value === "number" ? Math.round(value * by) : value;
}

/** @param {TypedOptions} typed @returns {ModelProviderOptions} */
export function optionsOf({ times, tries, callsAtOnce, keyHeader, apiVersion, headers, quirks }) {
  const timeouts = Object.fromEntries(Object.entries(times).flatMap(([key, text]) => (text.trim() ? [[key, whole(text, 1000)]] : [])));
  const given = {
    tries: tries.trim() && whole(tries),
    callsAtOnce: callsAtOnce.trim() && whole(callsAtOnce),
    headers: headers.length ? headers.map(({ name, way, text }) => ({ name: name.trim(), ...(way === "key" ? { keyName: text.trim() } : { value: text.trim() }) })) : "",
    keyHeader: keyHeader.trim(),
    apiVersion: apiVersion.trim(),
    quirks: quirks.length ? quirks : "",
  };
  const kept = Object.entries(given).filter(([, value]) => value !== "");
  return /** @type {any} */ ({ timeouts, ...Object.fromEntries(kept) });
}

/** @param {{ typed: TypedOptions, onInput: (typed: TypedOptions) => void, error?: AgentRuntimeError }} props */
export function OptionFields({ typed, onInput, error }) {
  const at = (/** @type {string} */ path) => faultAt(error, `serverOptions.${path}`);
  const set = (/** @type {Partial<TypedOptions>} */ change) => onInput({ ...typed, ...change });
  return details(
    null,
    summary(null, "How its server is asked"),
    div(
      { class: "stack tight" },
      p({ class: "hint" }, "Nothing here is needed for a server that keeps to the API. Times are in seconds."),
      div(
        { class: "row" },
        TIMES.map(([key, label, hint]) => h(Field, { key, label, hint, isRequired: false, inputMode: "decimal", value: typed.times[key] ?? "", onInput: (text) => set({ times: { ...typed.times, [key]: text } }), error: at(`timeouts.${key}`) })),
      ),
      div(
        { class: "row" },
        h(Field, { label: "Calls at once", hint: "Further runs wait in line.", isRequired: false, inputMode: "numeric", value: typed.callsAtOnce, onInput: (callsAtOnce) => set({ callsAtOnce }), error: at("callsAtOnce") }),
        h(Field, { label: "Tries", hint: "Of a call that may pass, in all.", isRequired: false, inputMode: "numeric", value: typed.tries, onInput: (tries) => set({ tries }), error: at("tries") }),
        h(Field, { label: "Header of the key", hint: "Such as api-key, for Azure.", isRequired: false, isMono: true, autoComplete: "off", most: 64, value: typed.keyHeader, onInput: (keyHeader) => set({ keyHeader }), error: at("keyHeader") }),
        h(Field, { label: "API version", hint: "The parameter api-version, for Azure.", isRequired: false, isMono: true, autoComplete: "off", most: 100, value: typed.apiVersion, onInput: (apiVersion) => set({ apiVersion }), error: at("apiVersion") }),
      ),
      h(Headers, { headers: typed.headers, onInput: (headers) => set({ headers }), error }),
      h(Quirks, { quirks: typed.quirks, onInput: (quirks) => set({ quirks }), error: at("quirks") }),
    ),
  );
}

/** @param {{ headers: TypedHeader[], onInput: (headers: TypedHeader[]) => void, error?: AgentRuntimeError }} props */
function Headers({ headers, onInput, error }) {
  return fieldset(
    { class: "field" },
    legend(null, "Headers of each request"),
    headers.map((header, index) => {
      const at = (/** @type {string} */ field) => faultAt(error, `serverOptions.headers[${index}].${field}`);
      const set = (/** @type {Partial<TypedHeader>} */ change) => onInput(headers.with(index, { ...header, ...change }));
      return div(
        { key: index, class: "row", role: "group", "aria-label": `Header ${index + 1}` },
        h(Field, { label: "Name", value: header.name, onInput: (name) => set({ name }), isRequired: true, isMono: true, autoComplete: "off", most: 64, error: at("name") }),
        h(Select, { label: "Its value", value: header.way, onInput: (way) => set({ way }), options: [{ value: "value", label: "A text" }, { value: "key", label: "A key that the operator listed" }] }),
        h(Field, { label: header.way === "key" ? "Name of the key" : "Text", value: header.text, onInput: (text) => set({ text }), isRequired: true, isMono: true, autoComplete: "off", most: 1000, error: at("value") ?? at("keyName") }),
        div(null, button({ type: "button", onClick: () => onInput(headers.toSpliced(index, 1)) }, `Remove ${header.name.trim() || `header ${index + 1}`}`)),
      );
    }),
    div(null, button({ type: "button", onClick: () => onInput([...headers, { name: "", way: "value", text: "" }]) }, "Add a header")),
  );
}

/** @param {{ quirks: ModelQuirk[], onInput: (quirks: ModelQuirk[]) => void, error?: string }} props */
function Quirks({ quirks, onInput, error }) {
  const all = /** @type {[ModelQuirk, string][]} */ (Object.entries(QUIRKS));
  return fieldset(
    { class: "field" },
    legend(null, "What it does not take"),
    p({ class: "hint" }, "The service finds these out itself, at the cost of a refused call after each start."),
    fragment(all.map(([quirk, label]) => h(Check, { key: quirk, label, value: quirks.includes(quirk), onInput: (is) => onInput(is ? [...quirks, quirk] : quirks.filter((one) => one !== quirk)) }))),
    error ? p({ class: "error" }, error) : null,
  );
}
