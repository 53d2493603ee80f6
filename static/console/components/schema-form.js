/**
 * A form made from a JSON Schema, as far as it describes plain fields: objects, text, numbers, yes or no, one of several,
 * lists of these. What it does not know is edited as JSON, and so is everything by choice.
 *
 * The value is what the form holds; whether it fits the schema, the server says. `schemaDefaults` is where a form begins.
 */

import { h, tags, useState } from "../ui.js";
import { Check, Field, Select } from "./field.js";

/** @import { Child } from "../ui.js" */

const { button, div, fieldset, legend, p, span } = tags;

const MOST_DEPTH = 6;

/**
 * @typedef {object} Schema
 * @property {string | string[]} [type]
 * @property {string} [title]
 * @property {string} [description]
 * @property {Record<string, Schema>} [properties]
 * @property {string[]} [required]
 * @property {Schema} [items]
 * @property {unknown[]} [enum]
 * @property {unknown} [const]
 * @property {unknown} [default]
 * @property {number} [maxLength]
 * @property {string} [format]
 * @property {unknown} [$ref]
 * @property {unknown} [oneOf]
 * @property {unknown} [anyOf]
 * @property {unknown} [allOf]
 */

/** @param {Schema | undefined} schema */
function typeOf(schema) {
  const types = [schema?.type ?? []].flat().filter((type) => type !== "null");
  return types.length === 1 ? types[0] : undefined;
}

/** Whether a form can be made of it. @param {Schema | undefined} schema @returns {boolean} */
function isPlain(schema, depth = 0) {
  if (!schema || depth > MOST_DEPTH || schema.$ref || schema.oneOf || schema.anyOf || schema.allOf) return false;
  if (schema.enum) return schema.enum.every((value) => typeof value === "string" || typeof value === "number");
  switch (typeOf(schema)) {
    case "object":
      return Boolean(schema.properties) && Object.values(schema.properties ?? {}).every((one) => isPlain(one, depth + 1));
    case "array":
      return typeOf(schema.items) !== "array" && isPlain(schema.items, depth + 1);
    case "string":
    case "number":
    case "integer":
    case "boolean":
      return true;
    default:
      return false;
  }
}

/** @param {Schema | undefined} schema @returns {any} */
export function schemaDefaults(schema, depth = 0) {
  if (!schema) return undefined;
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (typeOf(schema) !== "object" || depth > MOST_DEPTH) return undefined;
  // A box that is not ticked says no, which is a value where one is required.
  const begun = (/** @type {string} */ name, /** @type {Schema} */ one) => schemaDefaults(one, depth + 1) ?? (typeOf(one) === "boolean" && schema.required?.includes(name) ? false : undefined);
  const values = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, begun(name, one)]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/**
 * @param {object} props
 * @param {Schema | undefined} props.schema without one: JSON
 * @param {unknown} props.value
 * @param {(value: any, fault?: string) => void} props.onInput `fault`: what is typed as JSON is none
 * @param {string} props.label of the whole
 * @param {string} [props.error]
 * @param {(name: string) => string | undefined} [props.faultOf] what is wrong with a field of the whole
 */
export function SchemaForm({ schema, value, onInput, label, error, faultOf }) {
  const fits = isPlain(schema) && typeOf(schema) === "object";
  const [asJson, setAsJson] = useState(!fits);
  return div(
    { class: "stack" },
    asJson ? h(JsonField, { label, value, onInput, error }) : fieldset({ class: "stack" }, legend({ class: "hidden" }, label), h(Members, { schema: /** @type {Schema} */ (schema), value: value ?? {}, onInput, faultOf }), error ? p({ class: "error" }, error) : null),
    fits ? div(null, button({ type: "button", class: "link", onClick: () => setAsJson(!asJson) }, asJson ? "Fill in a form" : "Edit as JSON")) : null,
  );
}

/** @param {{ label: string, value: unknown, onInput: (value: any, fault?: string) => void, error?: string, hint?: string }} props */
export function JsonField({ label, value, onInput, error, hint }) {
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [fault, setFault] = useState(/** @type {string | undefined} */ (undefined));
  const take = (/** @type {string} */ typed) => {
    setText(typed);
    try {
      const parsed = typed.trim() === "" ? undefined : JSON.parse(typed);
      setFault(undefined);
      onInput(parsed);
    } catch (cause) {
      const said = `This is not JSON yet: ${/** @type {Error} */ (cause).message}`;
      setFault(said);
      onInput(value, said);
    }
  };
  return h(Field, { label, hint: hint ?? "JSON", value: text, onInput: take, lines: Math.min(18, Math.max(5, text.split("\n").length + 1)), isMono: true, error: fault ?? error });
}

/** @param {{ schema: Schema, value: any, onInput: (value: any) => void, faultOf?: (name: string) => string | undefined }} props */
function Members({ schema, value, onInput, faultOf }) {
  return div(
    { class: "stack" },
    Object.entries(schema.properties ?? {}).map(([name, one]) => {
      const set = (/** @type {any} */ to) => {
        const next = { ...value };
        if (to === undefined) delete next[name];
        else next[name] = to;
        onInput(next);
      };
      return h(One, { key: name, name, schema: one, value: Object.hasOwn(value, name) ? value[name] : undefined, onInput: set, isRequired: Boolean(schema.required?.includes(name)), error: faultOf?.(name) });
    }),
  );
}

/** @param {{ name: string, schema: Schema, value: any, onInput: (value: any) => void, isRequired: boolean, error?: string }} props @returns {import("../ui.js").Node_} */
function One({ name, schema, value, onInput, isRequired, error }) {
  const label = schema.title ?? name;
  const common = { label, hint: schema.description, isRequired, error };
  if (schema.enum) {
    const options = schema.enum.map((one) => ({ value: String(one), label: String(one) }));
    return h(Select, { ...common, value: value === undefined ? "" : String(value), options, placeholder: "–", onInput: (text) => onInput(schema.enum?.find((one) => String(one) === text)) });
  }
  switch (typeOf(schema)) {
    case "boolean":
      return h(Check, { ...common, value: Boolean(value), onInput });
    case "integer":
    case "number":
      return h(NumberField, { ...common, value, onInput });
    case "object":
      return fieldset({ class: "field" }, legend(null, label), schema.description ? p({ class: "hint" }, schema.description) : null, div({ class: "group" }, h(Members, { schema, value: value ?? {}, onInput })));
    case "array":
      return h(Items, { label, schema, value: Array.isArray(value) ? value : [], onInput });
    default:
      return h(Field, { ...common, value: typeof value === "string" ? value : "", most: schema.maxLength, lines: schema.maxLength === undefined || schema.maxLength > 200 ? (schema.format || String(value ?? "").length < 60 ? undefined : 4) : undefined, onInput: (text) => onInput(text === "" && !isRequired ? undefined : text) });
  }
}

/** What is typed as a number; what is none is left to the server. @param {string} text */
function numberOf(text) {
  if (text.trim() === "") return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/**
 * It keeps the text, since "1." and "1.0" stand for a number that is written otherwise, until the value becomes another one.
 * @param {import("./field.js").Common & { value: any, onInput: (value: any) => void }} props
 */
function NumberField({ value, onInput, ...common }) {
  const [typed, setTyped] = useState("");
  const text = numberOf(typed) === value ? typed : String(value ?? "");
  const isCut = /^-?\d+$/.test(text.trim()) && !Number.isSafeInteger(value);
  const take = (/** @type {string} */ next) => {
    setTyped(next);
    onInput(numberOf(next));
  };
  return h(Field, { ...common, value: text, inputMode: "decimal", onInput: take, error: isCut ? `A browser cannot keep so many digits: this is sent as ${value}.` : common.error });
}

/** @param {{ label: string, schema: Schema, value: any[], onInput: (value: any) => void }} props */
function Items({ label, schema, value, onInput }) {
  const items = schema.items ?? {};
  /** @type {Child[]} */
  const rows = value.map((item, index) =>
    div(
      { key: index, class: "stack" },
      h(One, { name: `${label} ${index + 1}`, schema: { ...items, title: items.title ?? `${label} ${index + 1}` }, value: item, isRequired: true, onInput: (to) => onInput(value.with(index, to)) }),
      div(null, button({ type: "button", onClick: () => onInput(value.toSpliced(index, 1)) }, `Remove ${label} ${index + 1}`)),
    ),
  );
  return fieldset(
    { class: "field" },
    legend(null, label),
    schema.description ? p({ class: "hint" }, schema.description) : null,
    div({ class: "group" }, rows, div(null, button({ type: "button", onClick: () => onInput([...value, schemaDefaults(items) ?? (typeOf(items) === "object" ? {} : "")]) }, span(null, `Add to ${label}`)))),
  );
}
