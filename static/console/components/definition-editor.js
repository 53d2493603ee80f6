/**
 * A definition as JSON, with its lines numbered and its faults at their lines. A press on a fault goes to its line.
 *
 * Guarantees: what is typed is never changed. Faults are those of the text that was sent: once it is changed they are
 * marked as of before.
 */

import { lineAt, linesOf } from "../json-lines.js";
import { counted } from "../number.js";
import { h, tags, useEffect, useId, useRef, useState } from "../ui.js";
import { Icon } from "./icon.js";

/** @import { FlowFault } from "agent-runtime/types" */

const { button, code, div, label: labelTag, li, ol, p, span, strong, textarea } = tags;

const MOST_LINES = 20_000;

/**
 * @param {object} props
 * @param {string} props.label
 * @param {string} props.text
 * @param {(text: string) => void} props.onInput
 * @param {{ path?: string, line?: number, message: string, hint?: string | null, code?: string }[]} props.faults
 * @param {FlowFault[]} [props.warnings]
 * @param {boolean} [props.isOld] the faults are of an earlier text
 */
export function DefinitionEditor({ label, text, onInput, faults, warnings = [], isOld = false }) {
  const id = useId();
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const gutter = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [places, setPlaces] = useState(/** @type {{ line: number, fault: any, isWarning: boolean }[]} */ ([]));
  useEffect(() => {
    const lines = linesOf(text);
    const at = (/** @type {any} */ fault) => fault.line ?? lineAt(lines, fault.path ?? "$");
    setPlaces([...faults.map((fault) => ({ line: at(fault), fault, isWarning: false })), ...warnings.map((fault) => ({ line: at(fault), fault, isWarning: true }))].sort((one, other) => Number(one.isWarning) - Number(other.isWarning) || one.line - other.line));
  }, [faults, warnings]);
  const marked = new Set(isOld ? [] : places.filter((one) => !one.isWarning).map((one) => one.line));
  const count = Math.min(text.split("\n").length, MOST_LINES);
  const goTo = (/** @type {number} */ line) => {
    const on = field.current;
    if (!on) return;
    const rows = on.value.split("\n");
    const from = rows.slice(0, line - 1).reduce((sum, row) => sum + row.length + 1, 0);
    on.focus();
    on.setSelectionRange(from, from + (rows[line - 1]?.length ?? 0));
    on.scrollTop = Math.max(0, (line - 4) * 20);
  };
  return div(
    { class: "field" },
    labelTag({ for: id }, label),
    div(
      { class: "definition" },
      div({ class: "gutter", ref: gutter, "aria-hidden": "true" }, Array.from({ length: count }, (_, index) => div({ key: index, class: marked.has(index + 1) ? "marked" : undefined }, index + 1))),
      textarea({
        ref: field,
        id,
        value: text,
        rows: 24,
        spellcheck: false,
        autocapitalize: "off",
        class: "mono",
        "aria-invalid": marked.size ? "true" : undefined,
        "aria-describedby": places.length ? `${id}-faults` : undefined,
        onInput: (event) => onInput(event.currentTarget.value),
        onScroll: (event) => gutter.current && (gutter.current.scrollTop = event.currentTarget.scrollTop),
      }),
    ),
    places.length
      ? div(
          { id: `${id}-faults`, class: "faults", "data-old": isOld || undefined },
          p({ role: "alert" }, strong(null, faults.length ? `${counted(faults.length, "fault")}${isOld ? ", before your change" : ""}` : counted(warnings.length, "warning"))),
          ol(
            null,
            places.map(({ line, fault, isWarning }, key) =>
              li(
                { key },
                h(Icon, { name: isWarning ? "information" : "warning" }),
                button({ type: "button", class: "link", onClick: () => goTo(line) }, `Line ${line}`),
                span(null, fault.message, fault.hint ? span({ class: "faint" }, ` ${fault.hint}`) : null, fault.path ? code({ class: "faint" }, ` ${fault.path}`) : null),
              ),
            ),
          ),
        )
      : null,
  );
}
