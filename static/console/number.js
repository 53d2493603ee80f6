/** Numbers as text: counts, tokens, money, bytes. English, with thin groups of thousands. */

/** `12 345` @param {number} value */
export function count(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** `1 run`, `3 runs` @param {number} value @param {string} one @param {string} [many] */
export function counted(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Tokens: `812`, `12.4k`, `3.1M` @param {number} value */
export function tokens(value) {
  if (value < 1000) return String(value);
  if (value < 100_000) return `${(value / 1000).toFixed(1)}k`;
  if (value < 1_000_000) return `${Math.round(value / 1000)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

/** US dollars: `$0.0042`, `$1.20`, `$1 204.00` @param {number} value */
export function dollars(value) {
  if (value === 0) return "$0";
  if (Math.abs(value) < 0.0001) return value < 0 ? ">-$0.0001" : "<$0.0001";
  if (Math.abs(value) < 0.1) return `$${value.toFixed(4)}`;
  const [whole, part] = value.toFixed(2).split(".");
  return `$${count(Number(whole))}.${part}`;
}

/** A number as it is typed. What is none is sent as it is: the server says where. @param {string} text */
export const typedNumber = (text) => (Number.isFinite(Number(text)) ? Number(text) : text.trim());

/** `3.4 KiB` @param {number} value */
export function bytes(value) {
  if (value < 1024) return `${value} B`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(1)} KiB`;
  return `${(value / 1024 / 1024).toFixed(1)} MiB`;
}
