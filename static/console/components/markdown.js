/**
 * The Markdown that models write.
 *
 * Guarantees: no string of HTML is made; raw HTML is shown as the text that it is. Images are links. A link leads to http,
 * https or mail, says its host, and tells it nothing. Text that the lexer does not take is shown as text.
 */

import { fragment, h, tags, useEffect, useState } from "../ui.js";

/** @import { Child } from "../ui.js" */
/** @import { Token, Tokens } from "marked" */

const { a, blockquote, br, code, del, div, em, hr, input, li, ol, p, pre, span, strong, table, tbody, td, th, thead, tr, ul } = tags;

/** Longer text is shown as it is: to lex it takes the page's time. */
const MOST_CHARACTERS = 200_000;
const MOST_DEPTH = 40;

/** @type {import("marked").Lexer | undefined} */
let Lexer;

/** @param {{ text: string }} props */
export function Markdown({ text }) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (Lexer) return;
    import("marked").then((module) => {
      Lexer = /** @type {any} */ (module.Lexer);
      draw(1);
    }, () => {});
  }, []);
  if (!Lexer || text.length > MOST_CHARACTERS) return div({ class: "markdown" }, h(Plain, { text }));
  try {
    return div({ class: "markdown" }, blocks(/** @type {any} */ (Lexer).lex(text, { gfm: true }), 0));
  } catch {
    return div({ class: "markdown" }, h(Plain, { text }));
  }
}

/** @param {{ text: string }} props */
function Plain({ text }) {
  return p({ class: "as-written" }, text);
}

/** @param {Token[] | undefined} tokens @param {number} depth @returns {Child} */
function blocks(tokens, depth) {
  return (tokens ?? []).map((token) => block(token, depth));
}

/** @param {Token} token @param {number} depth @returns {Child} */
function block(token, depth) {
  if (depth > MOST_DEPTH) return p(null, token.raw);
  const any = /** @type {any} */ (token);
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // The page has its own headings.
      return p(null, strong(null, inline(any.tokens, depth + 1)));
    case "paragraph":
      return p(null, inline(any.tokens, depth + 1));
    case "text":
      return any.tokens ? span(null, inline(any.tokens, depth + 1)) : any.text;
    case "blockquote":
      return blockquote(null, blocks(any.tokens, depth + 1));
    case "code":
      return pre({ tabIndex: 0 }, code(null, any.text));
    case "hr":
      return hr(null);
    case "list": {
      const items = any.items.map((/** @type {Tokens.ListItem} */ item) => li(null, item.task ? input({ type: "checkbox", checked: Boolean(item.checked), disabled: true, "aria-label": "Done" }) : null, blocks(item.tokens, depth + 1)));
      return any.ordered ? ol({ start: Number(any.start) || 1 }, items) : ul(null, items);
    }
    case "table":
      return div(
        { class: "scrolls", tabIndex: 0, role: "group", "aria-label": "Table" },
        table(
          null,
          thead(null, tr(null, any.header.map((/** @type {Tokens.TableCell} */ cell) => th({ scope: "col" }, inline(cell.tokens, depth + 1))))),
          tbody(null, any.rows.map((/** @type {Tokens.TableCell[]} */ row) => tr(null, row.map((cell) => td(null, inline(cell.tokens, depth + 1)))))),
        ),
      );
    default:
      return p(null, token.raw);
  }
}

/** @param {Token[] | undefined} tokens @param {number} depth @returns {Child} */
function inline(tokens, depth) {
  return (tokens ?? []).map((token) => mark(token, depth));
}

/** @param {Token} token @param {number} depth @returns {Child} */
function mark(token, depth) {
  if (depth > MOST_DEPTH) return token.raw;
  const any = /** @type {any} */ (token);
  switch (token.type) {
    case "strong":
      return strong(null, inline(any.tokens, depth + 1));
    case "em":
      return em(null, inline(any.tokens, depth + 1));
    case "del":
      return del(null, inline(any.tokens, depth + 1));
    case "codespan":
      return code(null, any.text);
    case "br":
      return br(null);
    case "link":
      return link(any.href, inline(any.tokens, depth + 1), any.raw);
    case "image":
      return link(any.href, any.text || "image", any.raw);
    case "escape":
      return any.text;
    case "text":
      return any.tokens ? inline(any.tokens, depth + 1) : any.text;
    default:
      return token.raw;
  }
}

/** @param {string} to @param {Child} text @param {string} raw */
function link(to, text, raw) {
  const url = URL.canParse(to) ? new URL(to) : undefined;
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return raw;
  return fragment(a({ href: url.href, target: "_blank", rel: "noopener noreferrer" }, text), span({ class: "host" }, ` (${url.protocol === "mailto:" ? url.pathname : url.host})`));
}
