/** Parts of a page, as links: each has its address. (Not the pattern of tabs: the page changes, focus stays on the link.) */

import { tags } from "../ui.js";

const { a, nav, span } = tags;

/** @param {{ label: string, tabs: { title: string, href: string, isCurrent: boolean, count?: number }[] }} props */
export function Tabs({ label, tabs }) {
  return nav(
    { class: "tabs", "aria-label": label },
    tabs.map((tab) => a({ key: tab.title, href: tab.href, "aria-current": tab.isCurrent ? "page" : undefined }, tab.title, tab.count === undefined ? null : span({ class: "badge" }, tab.count))),
  );
}
