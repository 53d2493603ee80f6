/** What a person does by keys alone: the Tab key until what is named has the focus, and then types. */

const MOST_STOPS = 120;

/** What a control is called, as a reader of the screen hears it. It runs in the page. */
function nameOf() {
  const on = document.activeElement;
  if (!on || on === document.body) return "";
  const label = on.getAttribute("aria-label") ?? (on.labels?.[0] ? [...on.labels[0].childNodes].filter((node) => !(node instanceof Element && node.matches(".faint, select, input, textarea"))).map((node) => node.textContent).join("") : on.textContent);
  return (label ?? "").trim();
}

/** Presses Tab until the control of this name has the focus. @param {any} page @param {string | RegExp} name */
export async function reach(page, name) {
  const seen = [];
  for (let stop = 0; stop < MOST_STOPS; stop++) {
    const here = await page.evaluate(nameOf);
    if (typeof name === "string" ? here === name : name.test(here)) return;
    seen.push(here);
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key never stops at ${name}; it stopped at ${[...new Set(seen)].join(" | ")}`);
}

/** Replaces what the field with the focus holds. @param {any} page @param {string} text */
export async function typed(page, text) {
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
}
