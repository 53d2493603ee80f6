/** The head of every page: the way to it, its one `h1`, its state and acts. It also names the document. */

import { step } from "../route.js";
import { fragment, h, signal, tags, useEffect } from "../ui.js";
import { Icon } from "./icon.js";
import { Failure, Loading } from "./states.js";

/** @import { Child } from "../ui.js" */

const { a, div, h1, header, nav, p } = tags;

/** How much waits for the reader's decision: the document's title begins with it. */
export const waiting = signal(0);

/** What readers of the screen hear of a page that one has gone to. */
export const titled = signal("");

/** The server counts to 100. @param {number} count */
export function most99(count) {
  return count >= 100 ? "99+" : String(count);
}

/**
 * @param {object} props
 * @param {string} props.title
 * @param {string} [props.documentTitle] where the title alone says too little, such as an id
 * @param {{ title: string, href: string }[]} [props.crumbs] the pages above this one
 * @param {Child} [props.state] beside the title: `h(State, …)`
 * @param {Child} [props.lead] a sentence
 * @param {Child} [props.actions] buttons, the main one last
 */
export function PageHead({ title, documentTitle = title, crumbs = [], state, lead, actions }) {
  const whole = `${waiting.value ? `(${most99(waiting.value)}) ` : ""}${documentTitle} · agent-runtime`;
  useEffect(() => {
    document.title = whole;
  }, [whole]);
  useEffect(() => {
    if (step.value) titled.value = documentTitle;
  }, [documentTitle]);
  return header(
    { class: "page-head" },
    crumbs.length
      ? nav({ class: "crumbs", "aria-label": "Where this page is" }, crumbs.map((crumb) => fragment(a({ href: crumb.href }, crumb.title), h(Icon, { name: "right" }))))
      : null,
    div({ class: "title" }, h1(null, title), state, actions ? div({ class: "actions" }, actions) : null),
    lead ? p({ class: "lead" }, lead) : null,
  );
}

/**
 * The page of an object while it is read, or why it cannot be.
 * @param {object} props
 * @param {string} props.title what it would be: "Agent"
 * @param {{ title: string, href: string }[]} props.crumbs
 * @param {Pick<import("../resource.js").Resource<any>, "error" | "reload">} props.of
 * @param {string} [props.notFound] the sentence of a 404
 */
export function Unread({ title, crumbs, of, notFound }) {
  return div(null, h(PageHead, { title, crumbs }), of.error ? h(Failure, { error: of.error, retry: of.reload, notFound }) : h(Loading, {}));
}
