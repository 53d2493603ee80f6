/**
 * What is kept between two looks: in this browser (`localStorage`), in this tab (`sessionStorage`), in the page.
 *
 * Guarantees: where a browser keeps nothing, it holds as long as the page. What the page keeps has a bound.
 */

/** @typedef {"localStorage" | "sessionStorage"} Where */

/** @param {Where} where @param {string} name @param {string} otherwise */
export function stored(where, name, otherwise) {
  try {
    return window[where].getItem(name) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** @param {Where} where @param {string} name @param {string} value */
export function store(where, name, value) {
  try {
    window[where].setItem(name, value);
  } catch {
    // It holds as long as the page.
  }
}

/**
 * Keeps a value as the newest one, and forgets the oldest beyond so many.
 * @template K, V
 * @param {Map<K, V>} kept @param {K} key @param {V} value @param {number} most
 */
export function keepNewest(kept, key, value, most) {
  kept.delete(key);
  kept.set(key, value);
  if (kept.size > most) kept.delete(/** @type {K} */ (kept.keys().next().value));
}
