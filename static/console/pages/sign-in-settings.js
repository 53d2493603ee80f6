/** Sign-in: the identity providers, who may sign in with a key, how long sessions last. Read alone where the operator keeps them. */

import { api } from "../api.js";
import { Banner } from "../components/banner.js";
import { FormDialog } from "../components/dialog.js";
import { Field, Select, faultAt } from "../components/field.js";
import { ProviderForm } from "../components/identity-provider-form.js";
import { Name, useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Facts, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Loaded } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { counted } from "../number.js";
import { holds, mayGrant } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { IdentityProvider, SignInSettings } from "agent-runtime/types" */

const { button, code, div, p } = tags;

const BY_KEY = /** @type {Record<string, string>} */ ({ on: "Everybody", admins: "Tenant admins", off: "Nobody" });

export default function SignInPage() {
  const settings = useResource("sign-in settings", (options) => api.signInSettings.get(options));
  const [open, setOpen] = useState(/** @type {"settings" | "provider" | null} */ (null));
  const isOperators = settings.data?.managedBy === "operator";
  const changes = mayGrant("tenant") && settings.data !== undefined && !isOperators;
  // By a provider people get sessions with every capability.
  const registers = changes && holds("keys:write");
  useActs(registers ? [{ title: "Register an identity provider", about: "Act", icon: "plus", run: () => setOpen("provider") }] : []);
  return div(
    null,
    h(PageHead, { title: "Sign-in", lead: "How people sign in to the console, and for how long.", actions: registers ? button({ type: "button", class: "primary", onClick: () => setOpen("provider") }, "Register a provider") : null }),
    isOperators ? h(OperatorsLock, {}) : null,
    div(
      { class: "stack" },
      h(Providers, {}),
      h(Section, { title: "Keys and sessions", actions: changes ? button({ type: "button", onClick: () => setOpen("settings") }, "Change") : null }, h(Loaded, { of: settings, show: (/** @type {SignInSettings} */ said) => h(Settings, { said }) })),
    ),
    open === "settings" && settings.data ? h(ChangeSettings, { said: settings.data, onClose: () => setOpen(null), onChange: settings.set }) : null,
    open === "provider" ? h(ProviderForm, { onClose: () => setOpen(null), onSaved: (/** @type {IdentityProvider} */ made) => go(href(`identity-providers/${made.id}`)) }) : null,
  );
}

/** Says that nothing here is the tenant's to change. */
export function OperatorsLock() {
  return div({ class: "failure-on-top" }, h(Banner, { tone: "wait", title: "Locked: the operator keeps these" }, p(null, "Identity providers and sign-in settings come from the server's file, which SVC_IDENTITY_PROVIDERS_PATH names. Ask whoever operates the server for a change.")));
}

function Providers() {
  const list = useList("identity providers", {}, (wanted, options) => api.identityProviders.list(wanted, options), { order: "asc" });
  return h(
    Section,
    { title: "Identity providers", isFlush: true },
    h(Table, {
      label: "Identity providers",
      list,
      rowHref: (/** @type {IdentityProvider} */ one) => href(`identity-providers/${one.id}`),
      columns: [
        { title: "Name", show: (/** @type {IdentityProvider} */ one) => one.name },
        { title: "State", show: (/** @type {IdentityProvider} */ one) => (one.serves ? h(State, { state: "active", word: "signs in" }) : h(State, { state: "deactivated", word: "not used" })) },
        { title: "Speaks for", show: (/** @type {IdentityProvider} */ one) => one.emailDomains.join(", ") || "no email domain", from: "middle", isSecond: true },
        { title: "Groups", show: (/** @type {IdentityProvider} */ one) => (one.groups.length ? counted(one.groups.length, "group") : "–") + (one.groupsAbsentAt || one.groupsLeftOutAt ? ", not always named" : ""), from: "wide", isSecond: true },
        { title: "Issuer", show: (/** @type {IdentityProvider} */ one) => code({ title: one.issuer }, one.issuer), from: "wide", isRest: true },
      ],
      empty: h(Empty, { title: "No identity provider." }, "People sign in with a key or an enrolment code. A provider of OpenID Connect, such as the one of your house, signs them in as everywhere else."),
    }),
    h(Pager, { list, ...IN_ORDER }),
  );
}

/** @param {{ said: SignInSettings }} props */
function Settings({ said }) {
  const names = useNames(["user"]);
  const stricter = (/** @type {unknown} */ own, /** @type {unknown} */ counts, /** @type {string} */ words) => (own !== null && own !== undefined && own !== counts ? `${words}, as the server says` : words);
  const { effective } = said;
  return h(Facts, {
    rows: true,
    facts: [
      ["Sign in with a key", stricter(said.tokenSignIn, effective.tokenSignIn, BY_KEY[effective.tokenSignIn] ?? effective.tokenSignIn)],
      ["Ends without use after", stricter(said.sessionIdleMinutes, effective.sessionIdleMinutes, counted(effective.sessionIdleMinutes, "minute"))],
      ["Ends at the latest after", stricter(said.sessionHours, effective.sessionHours, counted(effective.sessionHours, "hour"))],
      ["Changed", said.changedAt ? fragment(h(Time, { at: said.changedAt }), said.changedBy ? fragment(" by ", h(Name, { id: said.changedBy, names })) : null) : undefined],
    ],
  });
}

/** @param {{ said: SignInSettings, onClose: () => void, onChange: (said: SignInSettings) => void }} props */
function ChangeSettings({ said, onClose, onChange }) {
  const [byKey, setByKey] = useState(String(said.tokenSignIn));
  const [idle, setIdle] = useState(said.sessionIdleMinutes ? String(said.sessionIdleMinutes) : "");
  const [hours, setHours] = useState(said.sessionHours ? String(said.sessionHours) : "");
  const number = (/** @type {string} */ text) => (text.trim() ? Number(text) : null);
  return h(FormDialog, {
    title: "Keys and sessions",
    act: "Save",
    isReady: [idle, hours].every((text) => !text.trim() || /^[1-9]\d*$/.test(text.trim())),
    onClose,
    onSubmit: async () => {
      onChange(await api.signInSettings.set({ tokenSignIn: byKey, sessionIdleMinutes: number(idle), sessionHours: number(hours) }));
      announce("Saved");
    },
    fields: (error) =>
      fragment(
        h(Select, { label: "Who may sign in with a key", hint: "To allow fewer takes an admin who has signed in by an identity provider within a day, so that nobody locks themselves out.", value: byKey, onInput: setByKey, error: faultAt(error, "tokenSignIn"), options: Object.entries(BY_KEY).map(([value, label]) => ({ value, label })) }),
        h(Field, { label: "A session ends without use after (minutes)", hint: "Empty: as the server says. Open sessions count too.", value: idle, onInput: setIdle, inputMode: "numeric", isRequired: false, error: faultAt(error, "sessionIdleMinutes") }),
        h(Field, { label: "A session ends at the latest after (hours)", hint: "Empty: as the server says.", value: hours, onInput: setHours, inputMode: "numeric", isRequired: false, error: faultAt(error, "sessionHours") }),
      ),
  });
}
