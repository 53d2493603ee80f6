/** An address that no page has. */

import { PageHead } from "../components/page-head.js";
import { Empty } from "../components/states.js";
import { href } from "../route.js";
import { h, tags } from "../ui.js";

const { a, div } = tags;

export default function Nowhere() {
  return div(null, h(PageHead, { title: "No page here" }), h(Empty, { title: "The console has no page at this address.", action: a({ class: "button", href: href("") }, "To the first page") }));
}
