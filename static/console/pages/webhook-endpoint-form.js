/**
 * The form of a webhook endpoint, to add one or to change it. The address is checked before anything is sent. A signing
 * secret is one that stands, or a new one: made in this browser, stored, and shown once.
 *
 * Guarantees: what was stored is not stored again when a later step is refused and the form is sent once more.
 */

import { AgentRuntimeError, api } from "../api.js";
import { Banner } from "../components/banner.js";
import { FormDialog } from "../components/dialog.js";
import { Check, Field, Select, faultAt } from "../components/field.js";
import { refOf, textOf, useSecrets } from "../components/secret-ref.js";
import { SecretOnce } from "../components/secret-once.js";
import { announce } from "../components/status.js";
import { useOnce } from "../once.js";
import { holds } from "../permit.js";
import { newSigningSecret } from "../signing-secret.js";
import { fragment, h, tags, useRef, useState } from "../ui.js";

/** @import { ChangeWebhookEndpoint, WebhookEndpoint } from "agent-runtime/types" */

const { button, div, fieldset, legend, p } = tags;

const KINDS = /** @type {[string, string][]} */ ([
  ["run.finished", "A run has ended that an app or the command line started."],
  ["approval.requested", "An approval begins to wait for a reviewer."],
]);
const NEW = " new";

/**
 * @param {object} props
 * @param {WebhookEndpoint} [props.endpoint] the one to change
 * @param {Map<string, import("../components/names.js").Named>} props.projects
 * @param {() => void} props.onClose
 * @param {(endpoint: WebhookEndpoint) => void} props.onDone
 */
export function EndpointForm({ endpoint, projects, onClose, onDone }) {
  const form = useEndpoint(endpoint);
  const [kept, setKept] = useState(/** @type {{ secret: string, made: WebhookEndpoint } | null} */ (null));
  /** What this form has put already: it is not put twice. */
  const put = useRef({ at: "", value: "", isShown: false });
  const once = useOnce();
  /** @param {{ envName: string, name: string }} at @param {string} url */
  const putSecret = async (at, url) => {
    const { refusal } = await api.webhookEndpoints.checkUrl({ url });
    if (refusal) throw new AgentRuntimeError("invalid", `Webhooks may not go to this URL. ${refusal.message}`, { status: 400, details: { path: "$.url" } });
    if (put.current.at === textOf(at)) return;
    const value = newSigningSecret();
    await api.secrets.put(at.envName, at.name, { value });
    Object.assign(put.current, { at: textOf(at), value });
  };
  const submit = async () => {
    const { url, body, secret } = form.read();
    if (secret) await putSecret(secret, url);
    const made = endpoint ? await api.webhookEndpoints.update(endpoint.endpointId, body) : await once(body, (options) => api.webhookEndpoints.create(/** @type {any} */ (body), options));
    announce(endpoint ? "Changed" : "Added");
    if (!secret) return onDone(made);
    put.current.isShown = true;
    setKept({ secret: put.current.value, made });
  };
  if (kept) return h(SecretOnce, { title: "The signing secret", secret: kept.secret, says: "Give it to the receiver: it verifies by it that a post came from here. It stands among the secrets now, and nobody can read it there.", onClose: () => (onClose(), onDone(kept.made)) });
  return h(FormDialog, {
    title: endpoint ? "Change the endpoint" : "Add an endpoint",
    act: endpoint ? "Save" : "Add the endpoint",
    isLarge: true,
    isReady: form.isReady,
    onSubmit: submit,
    onClose: () => put.current.isShown || onClose(),
    fields: (error) =>
      fragment(
        h(AddressField, { value: form.url, onInput: form.setUrl, error: faultAt(error, "url") }),
        h(KindsField, { kinds: form.kinds, onInput: form.setKinds, error: faultAt(error, "events") }),
        h(SecretField, { form, error: faultAt(error, "secretRef") }),
        h(FilterFields, { form, projects, error }),
      ),
  });
}

/**
 * What the form holds.
 * @param {WebhookEndpoint} [endpoint]
 */
function useEndpoint(endpoint) {
  const filter = endpoint?.filter;
  const [url, setUrl] = useState(endpoint?.url ?? "");
  const [kinds, setKinds] = useState(/** @type {string[]} */ (endpoint?.events ?? ["run.finished"]));
  const [secret, setSecret] = useState(endpoint ? textOf(endpoint.secretRef) : "");
  const [fresh, setFresh] = useState({ envName: "production", name: "WEBHOOK_SECRET" });
  const [isFiltered, setFiltered] = useState(Boolean(filter));
  const [projectId, setProjectId] = useState(filter?.projectId ?? "");
  const [flows, setFlows] = useState((filter?.flowIds ?? []).join(", "));
  const [dryRuns, setDryRuns] = useState(Boolean(filter?.includeDryRuns));
  const isNew = secret === NEW;
  const ofRuns = kinds.includes("run.finished");
  return {
    ...{ url, setUrl, kinds, setKinds, secret, setSecret, isNew, fresh, setFresh, isFiltered, setFiltered, projectId, setProjectId, flows, setFlows, dryRuns, setDryRuns, ofRuns },
    isReady: Boolean(url.trim() && kinds.length && secret && (!isNew || (fresh.envName.trim() && fresh.name.trim()))),
    read() {
      const secretRef = isNew ? { envName: fresh.envName.trim(), name: fresh.name.trim() } : refOf(secret);
      const flowIds = flows.split(/[\s,]+/).filter(Boolean);
      const given = { ...(projectId ? { projectId } : {}), ...(ofRuns && flowIds.length ? { flowIds } : {}), ...(ofRuns && dryRuns ? { includeDryRuns: true } : {}) };
      /** @type {ChangeWebhookEndpoint} */
      const body = { url: url.trim(), events: kinds, secretRef, ...(isFiltered ? { filter: given } : endpoint?.filter ? { filter: null } : {}) };
      // What stays is left out: naming the same secret again would say that it changed.
      if (endpoint && textOf(endpoint.secretRef) === textOf(secretRef)) delete body.secretRef;
      if (endpoint && endpoint.url === body.url) delete body.url;
      return { url: url.trim(), body, secret: isNew ? secretRef : undefined };
    },
  };
}

/** @param {{ value: string, onInput: (value: string) => void, error?: string }} props */
function AddressField({ value, onInput, error }) {
  const [said, setSaid] = useState(/** @type {{ of: string, tone: "good" | "bad" | "wait", text: string } | null} */ (null));
  const check = async () => {
    const url = value.trim();
    if (!url) return;
    const checked = await api.webhookEndpoints.checkUrl({ url }).catch(() => null);
    if (!checked) return setSaid(null);
    if (checked.refusal) return setSaid({ of: url, tone: "bad", text: `Webhooks may not go there. ${checked.refusal.message}` });
    if (checked.unresolved) return setSaid({ of: url, tone: "wait", text: `It may be added. ${checked.unresolved}` });
    setSaid({ of: url, tone: "good", text: `Webhooks may go there: ${checked.addresses.join(", ")}.` });
  };
  const shown = said && said.of === value.trim() ? said : null;
  return div(
    { class: "stack tight" },
    h(Field, { label: "Address", hint: "Where the service posts to. It uses https outside of development.", type: "url", inputMode: "url", value, onInput, isRequired: true, placeholder: "https://hooks.example.com/agent-runtime", most: 2048, error, autofocus: true, autoComplete: "off" }),
    div(null, button({ type: "button", "aria-disabled": value.trim() ? undefined : "true", onClick: check }, "Check the address")),
    shown ? h(Banner, { tone: shown.tone, isAlert: true }, shown.text) : null,
  );
}

/** @param {{ kinds: string[], onInput: (kinds: string[]) => void, error?: string }} props */
function KindsField({ kinds, onInput, error }) {
  // An endpoint may have a kind that nothing sends yet: it keeps it, and nobody can choose it here.
  const others = kinds.filter((kind) => !KINDS.some(([one]) => one === kind));
  return fieldset(
    { class: "field" },
    legend(null, "What it is sent"),
    KINDS.map(([kind, says]) => h(Check, { key: kind, label: kind, hint: says, value: kinds.includes(kind), onInput: (isOn) => onInput([...KINDS.map(([one]) => one).filter((one) => (one === kind ? isOn : kinds.includes(one))), ...others]) })),
    error ? p({ class: "error" }, error) : null,
  );
}

/** @param {{ form: ReturnType<typeof useEndpoint>, error?: string }} props */
function SecretField({ form, error }) {
  const options = useSecrets(form.isNew ? undefined : form.secret);
  const isTaken = options.some((one) => one.value === textOf({ envName: form.fresh.envName.trim(), name: form.fresh.name.trim() }));
  if (holds("secrets:write")) options.push({ value: NEW, label: "Make a new one" });
  const set = (/** @type {Partial<{ envName: string, name: string }>} */ part) => form.setFresh({ ...form.fresh, ...part });
  return fragment(
    h(Select, { label: "Signing secret", hint: "A secret that begins with whsec_. The receiver verifies each post by it.", value: form.secret, onInput: form.setSecret, options, placeholder: "Choose", error: form.isNew ? undefined : error }),
    form.isNew
      ? div(
          { class: "group columns" },
          h(Field, { label: "Environment", value: form.fresh.envName, onInput: (envName) => set({ envName }), isRequired: true, isMono: true, most: 100, autoComplete: "off", error }),
          h(Field, { label: "Name", value: form.fresh.name, onInput: (name) => set({ name }), isRequired: true, isMono: true, most: 128, autoComplete: "off" }),
          isTaken ? h(Banner, { tone: "wait" }, "This secret stands already. It gets a new value; the earlier one signs beside it for 24 hours.") : null,
        )
      : null,
  );
}

/** @param {{ form: ReturnType<typeof useEndpoint>, projects: Map<string, import("../components/names.js").Named>, error?: AgentRuntimeError }} props */
function FilterFields({ form, projects, error }) {
  return fragment(
    h(Check, { label: "Only some of it", hint: "Without this it is sent every event of these kinds.", value: form.isFiltered, onInput: form.setFiltered }),
    form.isFiltered
      ? div(
          { class: "group stack" },
          h(Select, { label: "Project", isRequired: false, value: form.projectId, onInput: form.setProjectId, options: [...projects].map(([value, { name }]) => ({ value, label: name })), placeholder: "All projects", error: faultAt(error, "filter.projectId") }),
          form.ofRuns ? h(Field, { label: "Flows", isRequired: false, hint: "Their ids, such as billing.refund; agent.turn is an agent's turn. All without one.", value: form.flows, onInput: form.setFlows, isMono: true, error: faultAt(error, "filter.flowIds") }) : null,
          form.ofRuns ? h(Check, { label: "Dry runs, too", value: form.dryRuns, onInput: form.setDryRuns, error: faultAt(error, "filter.includeDryRuns") }) : null,
        )
      : null,
  );
}
