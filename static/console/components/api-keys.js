/**
 * The API keys of somebody: a list, one to make with limits, one to revoke. A key that is made is shown once.
 *
 * Guarantees: what the form offers is what the reader's own key may give; the least is chosen first.
 */

import { keyLimits } from "../permit.js";
import { fragment, h, tags, useRef, useState } from "../ui.js";
import { confirm, FormDialog } from "./dialog.js";
import { Check, Field, Select, faultAt } from "./field.js";
import { Name } from "./names.js";
import { SecretOnce } from "./secret-once.js";
import { State } from "./state.js";
import { announce } from "./status.js";
import { Table } from "./table.js";
import { Time } from "./time.js";
import { Empty } from "./states.js";
import { serverNow } from "../time.js";

/** @import { MintedToken, NewToken, Token } from "agent-runtime/types" */

const { button, code, fieldset, legend, p, span } = tags;

const DAY_MS = 86_400_000;
const LIVES = [
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "", label: "Never by itself" },
];
const CAPABILITIES = /** @type {Record<string, string>} */ ({
  "access:write": "Change who may do what",
  "env:write": "Change environments",
  "keys:write": "Make keys, and revoke others than itself",
  "secrets:write": "Put and delete secrets",
});

/**
 * @param {object} props
 * @param {string} props.label whose they are: "Keys of ci-deploy"
 * @param {import("./pager.js").List<Token>} props.list
 * @param {Map<string, import("./names.js").Named>} props.names of projects
 * @param {boolean} props.mayWrite
 * @param {string} [props.credentialId] the key of this request itself
 * @param {(token: Token) => Promise<unknown>} props.onRevoke
 * @param {string} props.empty
 */
export function ApiKeys({ label, list, names, mayWrite, credentialId, onRevoke, empty }) {
  const ask = (/** @type {Token} */ token) =>
    confirm({
      title: `Revoke the key ${token.name} (…${token.lastFour})?`,
      says: "Whatever uses it is refused at once, and so are the sessions that were opened with it. It cannot be brought back.",
      act: "Revoke the key",
      run: async () => {
        await onRevoke(token);
        announce("Revoked");
        list.reload();
      },
    });
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { title: "Name", show: (/** @type {Token} */ token) => span(null, token.name, token.id === credentialId ? span({ class: "tag beside" }, "this one") : null) },
    { title: "Ends with", show: (/** @type {Token} */ token) => code(null, `…${token.lastFour}`) },
    { title: "May do", show: (/** @type {Token} */ token) => limits(token, names), wraps: true, from: "middle" },
    { title: "Last used (UTC)", show: (/** @type {Token} */ token) => (token.lastUsedAt ? h(Time, { at: token.lastUsedAt, short: true }) : span({ class: "faint" }, "Not yet")), from: "middle" },
    { title: "Made (UTC)", show: (/** @type {Token} */ token) => h(Time, { at: token.createdAt, short: true, ago: false }), from: "wide", isSecond: true },
    { title: "Until (UTC)", show: (/** @type {Token} */ token) => ending(token), from: "wide" },
  ];
  if (mayWrite) columns.push({ title: "What to do", isActs: true, show: (/** @type {Token} */ token) => button({ type: "button", "aria-label": `Revoke ${token.name}, which ends with ${token.lastFour}`, onClick: () => ask(token) }, "Revoke") });
  return h(Table, { label, columns, list, empty: h(Empty, { title: empty }) });
}

/** @param {Token} token */
function ending(token) {
  if (!token.expiresAt) return span({ class: "faint" }, "No end");
  return Date.parse(token.expiresAt) < serverNow() ? h(State, { state: "expired" }) : h(Time, { at: token.expiresAt, short: true });
}

/** @param {Token} token @param {Map<string, import("./names.js").Named>} names */
function limits(token, names) {
  const isAll = token.role === "admin";
  return span(
    null,
    isAll ? "Whatever its owner may" : "As a member of the tenant",
    token.projectId ? fragment(", in ", h(Name, { id: token.projectId, names }), " alone") : null,
    token.capabilities.map((one) => span({ key: one, class: "tag beside", title: CAPABILITIES[one] }, one)),
  );
}

/**
 * @param {object} props
 * @param {string} props.whose "Your key", "A key of ci-deploy"
 * @param {boolean} [props.isAccount] of a service account: it has a member's role, and needs a role on the project
 * @param {{ value: string, label: string }[]} props.projects to which it may be limited
 * @param {(body: NewToken) => Promise<MintedToken>} props.mint
 * @param {() => void} props.onClose
 * @param {() => void} props.onMade
 */
export function MakeKey({ whose, isAccount = false, projects, mint, onClose, onMade }) {
  const most = keyLimits();
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  const [capabilities, setCapabilities] = useState(/** @type {string[]} */ ([]));
  const [projectId, setProject] = useState("");
  const [days, setDays] = useState("90");
  // The dialog with the form closes after that with the key has taken its place.
  const isMade = useRef(false);
  const [minted, setMinted] = useState(/** @type {MintedToken | null} */ (null));
  if (minted)
    return h(SecretOnce, {
      title: `The key ${minted.name}`,
      secret: minted.token,
      says: "Keep it where whatever uses it finds it: a password manager, the secrets of a pipeline. It is sent as Authorization: Bearer.",
      onClose: () => (onMade(), onClose()),
    });
  return h(FormDialog, {
    title: "Make a key",
    act: "Make the key",
    isReady: Boolean(name.trim()),
    onClose: () => void (isMade.current || onClose()),
    onSubmit: async () => {
      const end = days ? new Date(serverNow() + Number(days) * DAY_MS).toISOString() : undefined;
      const made = await mint({ name: name.trim(), role, capabilities, projectId: projectId || undefined, expiresAt: end });
      isMade.current = true;
      setMinted(made);
    },
    fields: (error) =>
      fragment(
        p({ class: "faint" }, `${whose} begins with what most programs need: as little as possible, for 90 days.`),
        h(Field, { label: "Name", hint: "What uses it, such as a laptop or a pipeline.", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name") }),
        most?.role === "admin" && !isAccount
          ? h(Select, { label: "It may do", value: role, onInput: setRole, error: faultAt(error, "role"), options: [{ value: "member", label: "What you may by your roles on projects, teams and orgs" }, { value: "admin", label: "Whatever you may, as a tenant admin too" }] })
          : null,
        h(Select, {
          label: "Limited to a project",
          hint: isAccount ? "Of those that it has a role on." : undefined,
          value: projectId,
          onInput: setProject,
          error: faultAt(error, "projectId"),
          options: [{ value: "", label: "No, every project" }, ...projects],
        }),
        h(Select, { label: "It ends", value: days, onInput: setDays, options: LIVES, error: faultAt(error, "expiresAt") }),
        most?.capabilities.length
          ? fieldset(
              { class: "field" },
              legend(null, "Also, if it needs to"),
              most.capabilities.map((one) => h(Check, { key: one, label: CAPABILITIES[one] ?? one, hint: one, value: capabilities.includes(one), onInput: (isOn) => setCapabilities(isOn ? [...capabilities, one] : capabilities.filter((held) => held !== one)) })),
            )
          : null,
      ),
  });
}

