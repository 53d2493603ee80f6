/**
 * What pages are written with: tags as functions, components, hooks and signals.
 *
 * Guarantees: the type checker knows every tag, its properties and its handlers. Text is always text: no string of HTML
 * is ever made into elements.
 *
 * `div({ class: "card" }, "Text")` is an element; `h(Time, { at })` is a component. The first argument is always the
 * properties; null stands for none.
 */

import { Fragment as PreactFragment, createElement, render } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

export { render };
export { useEffect, useId, useLayoutEffect, useRef, useState };
export { effect, signal } from "@preact/signals";

/**
 * @typedef {import("preact").VNode<any>} Node_
 * @typedef {import("./child.js").Child} Child
 * @typedef {import("preact").JSX.IntrinsicElements} Elements
 * @typedef {{ [name: `data-${string}`]: string | number | boolean | undefined }} Data
 * @typedef {{ [Tag in keyof Elements]: (props: (Elements[Tag] & Data) | null, ...children: Child[]) => Node_ }} Tags
 */

/** @type {Tags} */
export const tags = new Proxy(/** @type {any} */ ({}), {
  get(made, name) {
    return (made[name] ??= (/** @type {any} */ props, /** @type {any[]} */ ...children) => createElement(/** @type {string} */ (name), props, ...children));
  },
});

/**
 * A component with its properties.
 * @template P
 * @param {(props: P) => Node_ | null} component
 * @param {Omit<P, "children"> & { key?: string | number }} props
 * @param {...Child} children
 * @returns {Node_}
 */
export function h(component, props, ...children) {
  return createElement(/** @type {any} */ (component), props, ...children);
}

/** Several children without an element around them. @param {...Child} children */
export function fragment(...children) {
  return createElement(PreactFragment, null, ...children);
}

/**
 * The class names that hold.
 * @param {...(string | false | null | undefined)} names
 */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}

/** Whether so long has passed since the component began. @param {number} ms */
export function useAfter(ms) {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const timer = setTimeout(setOver, ms, true);
    return () => clearTimeout(timer);
  }, []);
  return isOver;
}
