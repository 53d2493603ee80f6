/**
 * On which line of a JSON text each value stands, by its JSON path: `$.do[2].small`. Pure.
 *
 * Guarantees: one pass over the text, however deep it is; beyond `MOST_DEPTH` nothing is recorded. A text that is no JSON
 * gives the lines of what can be read.
 */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const MOST_DEPTH = 80;
const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** The last part of a path. */
const LAST = /(?:\.[^.[\]]+|\[(?:\d+|"(?:[^"\\]|\\.)*")\])$/;

/** @param {string} path @param {string} key */
const member = (path, key) => (PLAIN.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`);

/** @param {string} text @returns {Map<string, number>} lines from 1 */
export function linesOf(text) {
  /** @type {Map<string, number>} */
  const lines = new Map([["$", 1]]);
  /** @type {{ path: string, isList: boolean, index: number, key: string | undefined }[]} */
  const open = [];
  let [line, at] = [1, 0];
  const place = () => {
    const top = open.at(-1);
    if (!top) return "$";
    return top.isList ? `${top.path}[${top.index}]` : member(top.path, top.key ?? "");
  };
  const record = (/** @type {string} */ path) => {
    if (open.length <= MOST_DEPTH && !lines.has(path)) lines.set(path, line);
  };
  for (const token of text.matchAll(TOKEN)) {
    for (; at < token.index; at++) if (text.charCodeAt(at) === 10) line++;
    const word = token[0];
    const top = open.at(-1);
    if (word === "{" || word === "[") {
      const path = open.length > MOST_DEPTH ? "" : place();
      record(path);
      open.push({ path, isList: word === "[", index: 0, key: undefined });
    } else if (word === "}" || word === "]") open.pop();
    else if (word === ",") {
      if (top) Object.assign(top, { index: top.index + 1, key: undefined });
    } else if (word === ":") continue;
    else if (top && !top.isList && top.key === undefined) {
      top.key = textOf(word);
      record(place());
    } else record(place());
  }
  return lines;
}

/** @param {string} word */
function textOf(word) {
  try {
    return String(JSON.parse(word));
  } catch {
    return word;
  }
}

/** The line of a path, or of the nearest value above it that stands in the text. @param {Map<string, number>} lines @param {string} path */
export function lineAt(lines, path) {
  for (let part = path; ; ) {
    const line = lines.get(part);
    if (line !== undefined) return line;
    const above = part.replace(LAST, "");
    if (above === part) return 1;
    part = above;
  }
}

/** Where the parser stopped: of `JSON.parse`'s error. @param {string} text @param {unknown} error */
export function lineOfError(text, error) {
  const at = /position (\d+)/.exec(String(error))?.[1];
  const named = /line (\d+)/.exec(String(error))?.[1];
  if (named) return Number(named);
  return at === undefined ? text.split("\n").length : text.slice(0, Number(at)).split("\n").length;
}
