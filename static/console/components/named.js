/** What the audit names: subjects and resources, by name and page as far as the reader may list them. */

import { href } from "../route.js";
import { PAGES } from "./names.js";

/** @import { Named } from "./names.js" */

/**
 * What a subject or resource `<kind>:<id>` names.
 * @param {string} text
 * @param {Map<string, Named>} names
 * @returns {{ kind: string, id: string, name?: string, href?: string }}
 */
export function named(text, names) {
  const at = text.indexOf(":");
  const [kind, id] = [text.slice(0, at), text.slice(at + 1)];
  const found = names.get(id);
  const page = PAGES[kind];
  // Of a user without a name it is not known whether it is a person.
  return { kind: found?.kind ?? kind, id, name: found?.name, href: found?.href ?? (page && kind !== "user" ? href(`${page}/${id}`) : undefined) };
}
