/** The style sheets that the first view does without (`data-later` in index.html). */

/** @type {Promise<unknown> | undefined} */
let loading;

/** @param {HTMLLinkElement} link */
function load(link) {
  return new Promise((done, failed) => {
    link.onload = done;
    link.onerror = () => failed(new Error(`${link.dataset.later} could not be loaded`));
    link.href = link.dataset.later ?? "";
  });
}

/** Loads them, once. What needs them is shown after they are there. */
export function laterStyles() {
  loading ??= Promise.all([.../** @type {NodeListOf<HTMLLinkElement>} */ (document.querySelectorAll("link[data-later]"))].map(load));
  return loading;
}
