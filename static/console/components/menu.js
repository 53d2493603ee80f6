/**
 * A menu button (ARIA practices): the list is a popover, so that nothing hides it; the arrow keys move, Home and End, the
 * first letter; Enter and Space do it; Escape closes and gives focus back.
 */

import { h, tags, useId, useLayoutEffect, useRef, useState } from "../ui.js";
import { Icon } from "./icon.js";

/** @import { Child } from "../ui.js" */

const { a, button, div, hr, span } = tags;

/**
 * @typedef {object} Item
 * @property {string} title
 * @property {() => void} [run]
 * @property {string} [href]
 * @property {boolean} [isDanger]
 * @property {boolean} [isChosen] one of several: it is the one that holds
 */

/**
 * @param {object} props
 * @param {string} props.label what it is a menu of; the button's words, which only readers hear where it has a `face`
 * @param {Child} [props.face] what the button shows in their place
 * @param {string} [props.class]
 * @param {Child} [props.about] a line above
 * @param {(Item | "line")[]} props.items
 */
export function Menu({ label, face, class: name, about, items }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const opener = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const all = () => /** @type {HTMLElement[]} */ ([...(list.current?.querySelectorAll("[role^=menuitem]") ?? [])]);
  // Before the next key can come: Escape closes what is open.
  useLayoutEffect(() => {
    const [menu, from] = [list.current, opener.current?.getBoundingClientRect()];
    if (!isOpen || !menu || !from) return;
    menu.showPopover();
    const size = menu.getBoundingClientRect();
    const left = Math.max(8, Math.min(from.left, innerWidth - size.width - 8));
    const below = from.bottom + 4 + size.height < innerHeight;
    menu.style.left = `${from.right - size.width > 8 && from.left > innerWidth / 2 ? from.right - size.width : left}px`;
    menu.style.top = `${below ? from.bottom + 4 : Math.max(8, from.top - size.height - 4)}px`;
    all()[0]?.focus();
  }, [isOpen]);
  const close = (/** @type {boolean} */ back) => {
    setOpen(false);
    if (back) opener.current?.focus();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const found = all();
    const at = found.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = (/** @type {number} */ index) => found[(index + found.length) % found.length]?.focus();
    if (event.key === "ArrowDown") to(at + 1);
    else if (event.key === "ArrowUp") to(at - 1);
    else if (event.key === "Home") to(0);
    else if (event.key === "End") to(-1);
    else if (event.key === "Tab") return close(false);
    else if (event.key === "Escape") close(true);
    else if (event.key === " ") found[at]?.click();
    else if (event.key.length === 1) found.find((one) => one.textContent?.toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  /** @param {Item | "line"} item @param {number} key */
  const drawn = (item, key) => {
    if (item === "line") return hr({ key });
    const common = { key, tabIndex: -1, class: item.isDanger ? "danger" : undefined, onClick: () => (close(!item.href), item.run?.()) };
    if (item.href) return a({ ...common, role: "menuitem", href: item.href }, item.title);
    if (item.isChosen === undefined) return button({ ...common, type: "button", role: "menuitem" }, item.title);
    return button({ ...common, type: "button", role: "menuitemradio", "aria-checked": item.isChosen ? "true" : "false" }, item.title, item.isChosen ? h(Icon, { name: "check" }) : null);
  };
  return div(
    { class: "menu-box" },
    button(
      { ref: opener, type: "button", class: name, "aria-haspopup": "menu", "aria-expanded": isOpen ? "true" : "false", "aria-controls": isOpen ? id : undefined, onClick: () => setOpen(!isOpen) },
      face ?? label,
      face ? span({ class: "hidden" }, label) : null,
    ),
    isOpen
      ? div(
          { ref: list, id, class: "menu", popover: "auto", role: "menu", "aria-label": label, onKeyDown, onToggle: (/** @type {any} */ event) => event.newState === "closed" && setOpen(false) },
          about ? div({ class: "about", role: "presentation" }, about) : null,
          items.map(drawn),
        )
      : null,
  );
}
