/** Who is meant, by exact email. Where the reader may list the tenant's people, the newest of them are suggested. */

import { api, quiet } from "../api.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { h } from "../ui.js";
import { Field, faultAt } from "./field.js";

/** @import { AgentRuntimeError } from "agent-runtime" */

/** @param {{ value: string, onInput: (email: string) => void, error: AgentRuntimeError | undefined }} props */
export function PersonField({ value, onInput, error }) {
  const lists = may("admin", "tenant");
  const people = useResource(lists ? "people to choose" : null, (options) => api.users.list({ status: "active", limit: 200, order: "desc" }, { ...options, ...quiet }));
  const suggestions = people.data?.data.flatMap((one) => (one.email ? [{ value: one.email, label: one.displayName }] : []));
  return h(Field, {
    label: "Email",
    hint: lists ? "Of one of the tenant's people, in any case." : "The exact address, in any case. Only tenant admins can look people up.",
    type: "email",
    autoComplete: "off",
    isRequired: true,
    autofocus: true,
    most: 320,
    value,
    onInput,
    suggestions,
    error: faultAt(error, "email") ?? (error?.status === 404 ? "Nobody of the tenant has this email address." : undefined),
  });
}
