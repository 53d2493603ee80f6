/** Bars over time, stacked by series. The same numbers stand in a table below, for readers and for copying. */

import { h, tags } from "../ui.js";
import { Table } from "./table.js";

const { details, div, figcaption, figure, g, p, rect, span, summary, svg, title: titleTag } = tags;

const MOST_BARS = 92;
const MOST_SERIES = 6;

/**
 * @param {object} props
 * @param {string} props.title
 * @param {string[]} props.series their names, six at most
 * @param {{ label: string, values: number[] }[]} props.bars 92 at most, the newest last
 * @param {(value: number) => string} [props.format]
 */
export function Bars({ title, series, bars, format = String }) {
  const [names, shown] = [series.slice(0, MOST_SERIES), bars.slice(-MOST_BARS)];
  const sums = shown.map((bar) => bar.values.reduce((sum, value) => sum + value, 0));
  const most = Math.max(...sums, Number.MIN_VALUE);
  const wide = 1000 / Math.max(shown.length, 1);
  const columns = [{ title: "When", show: (/** @type {any} */ bar) => bar.label }, ...names.map((name, index) => ({ title: name, isNumber: true, show: (/** @type {any} */ bar) => format(bar.values[index] ?? 0) }))];
  return figure(
    { class: "bars" },
    figcaption({ class: "row spread" }, span(null, title), span({ class: "faint" }, `at most ${format(most === Number.MIN_VALUE ? 0 : most)}`)),
    svg(
      { viewBox: "0 0 1000 140", preserveAspectRatio: "none", role: "img", "aria-label": `${title}. The table below has the numbers.` },
      shown.map((bar, at) => {
        let top = 140;
        return g(
          { key: bar.label },
          titleTag(null, `${bar.label}: ${names.map((name, index) => `${name} ${format(bar.values[index] ?? 0)}`).join(", ")}`),
          names.map((name, index) => {
            const size = ((bar.values[index] ?? 0) / most) * 136;
            top -= size;
            return rect({ key: name, class: `series-${index}`, x: at * wide + wide * 0.12, y: top, width: wide * 0.76, height: size });
          }),
        );
      }),
    ),
    p({ class: "row spread faint" }, span(null, shown[0]?.label), span(null, shown.at(-1)?.label)),
    names.length > 1 ? div({ class: "legend" }, names.map((name, index) => span({ key: name, class: `series-${index}` }, name))) : null,
    details(null, summary(null, "As a table"), h(Table, { label: title, columns, rows: [...shown].reverse(), rowKey: (/** @type {any} */ bar) => bar.label })),
  );
}
