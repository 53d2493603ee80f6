/**
 * A labelled field: its hint and its error belong to it for readers, and `isRequired` says so in words.
 *
 * `Field` is text (or many lines), `Select` one of several, `Check` yes or no. `faultAt(error, "path")` is the server's
 * sentence about a field.
 */

import { tags, useId, useLayoutEffect, useRef } from "../ui.js";

/** @import { AgentRuntimeError } from "agent-runtime" */
/** @import { Child } from "../ui.js" */

const { datalist, div, input, label: labelTag, option, p, select, span, textarea } = tags;

/**
 * What the server says about a field of the body.
 * @param {AgentRuntimeError | undefined} error
 * @param {string} path such as `email` or `secretRef.name`
 * @param {string} [code] of an error that is about this field, too: `already-exists` of a name
 * @param {boolean} [isBelow] the field holds a whole, such as JSON: a fault within it is the field's, too
 * @returns {string | undefined}
 */
export function faultAt(error, path, code, isBelow = false) {
  const plain = (/** @type {unknown} */ text) => String(text ?? "").replace(/^[#$]?[./]?/, "").replace(/\//g, ".");
  /** @type {{ path?: string, message?: string, expected?: string }[]} */
  const faults = Array.isArray(error?.details.faults) ? error.details.faults : [];
  const isAt = (/** @type {unknown} */ given) => {
    const at = plain(given);
    return at === path || (isBelow && (at.startsWith(`${path}.`) || at.startsWith(`${path}[`)));
  };
  const found = faults.find((fault) => isAt(fault.path));
  if (found) return found.message ?? found.expected ?? error?.message;
  const isOfIt = error && ((error.details.path !== undefined && isAt(error.details.path)) || (code !== undefined && error.serverCode === code));
  return isOfIt ? error.message : undefined;
}

/**
 * Goes to the first field of a form at which something is wrong, where the server says so: `form({ ref: useFaulty(act.error), … })`.
 * @param {AgentRuntimeError | undefined} error
 */
export function useFaulty(error) {
  const ref = useRef(/** @type {HTMLFormElement | null} */ (null));
  useLayoutEffect(() => {
    const said = error && ref.current?.querySelector('[aria-invalid="true"], fieldset > .error');
    const field = /** @type {HTMLElement | null | undefined} */ (said?.matches(".error") ? said.parentElement?.querySelector("input, select, textarea") : said);
    const folded = field?.closest("details");
    if (folded) folded.open = true;
    field?.focus();
  }, [error]);
  return ref;
}

/**
 * @typedef {object} Common
 * @property {string} label
 * @property {Child} [hint]
 * @property {string} [error]
 * @property {boolean} [isRequired]
 * @property {boolean} [isHidden] the label is for readers of the screen alone
 */

/** @param {Common & { id: string, children?: Child }} props */
function Framed({ id, label, hint, error, isRequired, isHidden, children }) {
  return div(
    { class: "field" },
    labelTag({ for: id, class: isHidden ? "hidden" : undefined }, label, isRequired === false ? span({ class: "faint" }, " (optional)") : null),
    hint ? p({ class: "hint", id: `${id}-hint` }, hint) : null,
    children,
    error ? p({ class: "error", id: `${id}-error` }, error) : null,
  );
}

/** @param {string} id @param {Common} props */
function described(id, { hint, error }) {
  return [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ") || undefined;
}

/**
 * @param {Common & {
 *   value: string, onInput: (value: string) => void, type?: "text" | "password" | "email" | "url" | "search", lines?: number, placeholder?: string,
 *   autoComplete?: string, isMono?: boolean, most?: number, autofocus?: boolean, inputMode?: "numeric" | "decimal" | "email" | "url",
 *   suggestions?: { value: string, label?: string }[] }} props
 *   `lines`: a field of many lines; `most`: characters at most; `suggestions`: what may be meant, and anything else too
 */
export function Field(props) {
  const id = useId();
  const { value, onInput, type = "text", lines, suggestions, placeholder, autoComplete, isMono, most, autofocus, inputMode, error, isRequired } = props;
  const common = {
    id,
    value,
    placeholder,
    autofocus,
    class: isMono ? "mono" : undefined,
    maxLength: most,
    "aria-invalid": error ? /** @type {const} */ ("true") : undefined,
    "aria-describedby": described(id, props),
    "aria-required": isRequired ? /** @type {const} */ ("true") : undefined,
  };
  return Framed({
    ...props,
    id,
    children: lines
      ? textarea({ ...common, rows: lines, spellcheck: !isMono, onInput: (event) => onInput(event.currentTarget.value) })
      : [
          input({ ...common, type: /** @type {any} */ (type), list: suggestions ? `${id}-list` : undefined, autoComplete, inputMode, spellcheck: !isMono, onInput: (event) => onInput(event.currentTarget.value) }),
          suggestions ? datalist({ id: `${id}-list` }, suggestions.map((one) => option({ key: one.value, value: one.value }, one.label))) : null,
        ],
  });
}

/** @param {Common & { value: string, onInput: (value: string) => void, options: { value: string, label: string }[], placeholder?: string }} props */
export function Select(props) {
  const id = useId();
  const { value, onInput, options, placeholder, error } = props;
  return Framed({
    ...props,
    id,
    children: select(
      { id, value, "aria-invalid": error ? "true" : undefined, "aria-describedby": described(id, props), onChange: (event) => onInput(event.currentTarget.value) },
      placeholder === undefined ? null : option({ value: "" }, placeholder),
      options.map((one) => option({ key: one.value, value: one.value, selected: one.value === value }, one.label)),
    ),
  });
}

/** @param {Common & { value: boolean, onInput: (value: boolean) => void }} props */
export function Check(props) {
  const id = useId();
  const { label, hint, error, value, onInput } = props;
  return div(
    { class: "field check" },
    input({ id, type: "checkbox", checked: value, "aria-describedby": described(id, props), onChange: (event) => onInput(event.currentTarget.checked) }),
    labelTag({ for: id }, label),
    hint ? p({ class: "hint", id: `${id}-hint` }, hint) : null,
    error ? p({ class: "error", id: `${id}-error` }, error) : null,
  );
}
