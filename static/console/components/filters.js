/** Filters of a list, in the address: a view of it is a link. Changing one goes back to the first page. */

import { query, setQuery } from "../route.js";
import { h, tags, useEffect, useState } from "../ui.js";

const { button, form, input, label, option, select, span } = tags;

/**
 * @typedef {object} Filter
 * @property {string} name in the address
 * @property {string} label
 * @property {{ value: string, label: string }[]} [options] one of these; without them any text
 * @property {string} [any] what holds while none of the options is chosen: "Any"
 * @property {string} [placeholder]
 * @property {"text" | "datetime-local"} [type]
 */

/** The filters' values. @param {Filter[]} filters @returns {Record<string, string | undefined>} */
export function filtered(filters) {
  return Object.fromEntries(filters.map((one) => [one.name, query.value[one.name] || undefined]));
}

/** What a field of a time holds, in the API's form: the field knows no zone. @param {string | undefined} text */
export function inUtc(text) {
  return text?.replace(/T\d\d:\d\d$/, "$&:00").replace(/T[\d:.]+$/, "$&Z");
}

/** Whether any filter is set. @param {Filter[]} filters */
export function isFiltered(filters) {
  return filters.some((one) => query.value[one.name]);
}

/** @param {Filter[]} filters */
export function clearFilters(filters) {
  setQuery({ ...Object.fromEntries(filters.map((one) => [one.name, null])), cursor: null });
}

/** @param {{ filters: Filter[] }} props */
export function Filters({ filters }) {
  return form(
    { class: "filters", role: "search", "aria-label": "Filters", onSubmit: (event) => event.preventDefault() },
    filters.map((filter) => h(One, { key: filter.name, filter })),
    isFiltered(filters) ? button({ type: "button", class: "plain", onClick: () => clearFilters(filters) }, "Clear filters") : null,
  );
}

/** @param {{ filter: Filter }} props */
function One({ filter }) {
  const value = query.value[filter.name] ?? "";
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const set = (/** @type {string} */ to) => to !== value && setQuery({ [filter.name]: to.trim(), cursor: null });
  return label(
    { "data-set": Boolean(value) },
    span(null, filter.label),
    filter.options
      ? select({ value, onChange: (event) => set(event.currentTarget.value) }, option({ value: "" }, filter.any ?? "Any"), filter.options.map((one) => option({ key: one.value, value: one.value, selected: one.value === value }, one.label)), value && !filter.options.some((one) => one.value === value) ? option({ value, selected: true }, value) : null)
      : input({ type: /** @type {any} */ (filter.type ?? "text"), value: typed, placeholder: filter.placeholder, "data-filter": true, onInput: (event) => setTyped(event.currentTarget.value), onChange: (event) => set(event.currentTarget.value) }),
  );
}
