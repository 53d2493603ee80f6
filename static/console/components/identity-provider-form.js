/** The form of an identity provider: to register one, or to change one. The issuer stays as it was registered. */

import { api, quiet } from "../api.js";
import { holds, rolesIn } from "../permit.js";
import { useResource } from "../resource.js";
import { fragment, h, tags, useState } from "../ui.js";
import { FormDialog } from "./dialog.js";
import { Check, Field, Select, faultAt } from "./field.js";
import { refOf, textOf, useSecrets } from "./secret-ref.js";
import { announce } from "./status.js";

/** @import { IdentityProvider, IdentityProviderGroup } from "agent-runtime/types" */

const { button, div, fieldset, legend, p } = tags;

/** The words of a field of several, by blanks, commas or lines. @param {string} text */
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** @param {{ provider?: IdentityProvider, onClose: () => void, onSaved: (provider: IdentityProvider) => void }} props */
export function ProviderForm({ provider, onClose, onSaved }) {
  const [name, setName] = useState(provider?.name ?? "");
  const [issuer, setIssuer] = useState(provider?.issuer ?? "");
  const [clientId, setClientId] = useState(provider?.clientId ?? "");
  const [secret, setSecret] = useState(provider?.clientSecretRef ? textOf(provider.clientSecretRef) : "");
  const [domains, setDomains] = useState(provider?.emailDomains.join(" ") ?? "");
  const [scopes, setScopes] = useState(provider?.scopes.join(" ") ?? "");
  const [trusts, setTrusts] = useState(provider?.emailTrust === "provider");
  const [creates, setCreates] = useState(provider?.createsPeople ?? false);
  const [claim, setClaim] = useState(provider?.groupsClaim ?? "");
  const [groups, setGroups] = useState(/** @type {IdentityProviderGroup[]} */ (provider?.groups ?? []));
  const teams = useResource("teams to choose", (options) => api.teams.list({ limit: 200 }, { ...options, ...quiet }));
  const secretOptions = useSecrets(secret);
  const body = () => ({
    name: name.trim(),
    clientId: clientId.trim(),
    ...(holds("secrets:write") ? { clientSecretRef: secret ? refOf(secret) : null } : {}),
    scopes: words(scopes),
    emailDomains: words(domains),
    emailTrust: trusts ? "provider" : "claim",
    createsPeople: creates,
    groupsClaim: claim.trim() || null,
    groups: claim.trim() ? groups : [],
  });
  return h(FormDialog, {
    title: provider ? `Change ${provider.name}` : "Register an identity provider",
    act: provider ? "Save" : "Register",
    isLarge: true,
    isReady: Boolean(name.trim() && issuer.trim() && clientId.trim()),
    onClose,
    onSubmit: async () => {
      const saved = provider ? await api.identityProviders.update(provider.id, body()) : await api.identityProviders.create({ ...body(), issuer: issuer.trim() });
      announce(provider ? "Saved" : "Registered");
      onSaved(saved);
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Name", hint: "What the sign-in page calls it.", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name", "already-exists") }),
        provider ? null : h(Field, { label: "Issuer", hint: "As its own document names it, to the letter. It stays.", type: "url", placeholder: "https://id.mill.example/realms/house", value: issuer, onInput: setIssuer, isRequired: true, isMono: true, autoComplete: "off", error: faultAt(error, "issuer") }),
        h(Field, { label: "Client id", hint: "What the provider calls this server.", value: clientId, onInput: setClientId, isRequired: true, isMono: true, autoComplete: "off", error: faultAt(error, "clientId") }),
        holds("secrets:write") ? h(Select, { label: "Client secret", hint: "One of the tenant's secrets, by its name. Put it there first.", value: secret, onInput: setSecret, options: secretOptions, placeholder: "None: a public client", error: faultAt(error, "clientSecretRef") }) : null,
        h(Field, { label: "Email domains", hint: "For whose people it speaks: mill.example. An address of another domain signs nobody in for the first time.", value: domains, onInput: setDomains, isRequired: false, autoComplete: "off", error: faultAt(error, "emailDomains") }),
        h(Check, { label: "Take its word for every email", hint: "Only where nobody chooses an email of their own there. Else an email counts that the provider says it verified.", value: trusts, onInput: setTrusts }),
        h(Check, { label: "Whoever signs in by it and was not added becomes a member", value: creates, onInput: setCreates }),
        h(Field, { label: "Further scopes", hint: "Beside openid, email and profile.", value: scopes, onInput: setScopes, isRequired: false, isMono: true, autoComplete: "off", error: faultAt(error, "scopes") }),
        h(Field, { label: "Claim with the groups", hint: "Such as groups. Empty: groups are not asked for.", value: claim, onInput: setClaim, isRequired: false, isMono: true, autoComplete: "off", error: faultAt(error, "groupsClaim") }),
        claim.trim() ? h(Groups, { groups, onInput: setGroups, teams: (teams.data?.data ?? []).map((one) => ({ value: one.id, label: one.name })), error: faultAt(error, "groups") }) : null,
      ),
  });
}

/** @param {{ groups: IdentityProviderGroup[], onInput: (groups: IdentityProviderGroup[]) => void, teams: { value: string, label: string }[], error?: string }} props */
function Groups({ groups, onInput, teams, error }) {
  const set = (/** @type {number} */ index, /** @type {Partial<IdentityProviderGroup>} */ change) => onInput(groups.with(index, { .../** @type {IdentityProviderGroup} */ (groups[index]), ...change }));
  return fieldset(
    { class: "field" },
    legend(null, "Groups that are teams here"),
    p({ class: "hint" }, "Who is in the group is in the team from their next sign-in on, and out of it once they are out of the group."),
    groups.map((one, index) =>
      div(
        { key: index, class: "group-row" },
        h(Field, { label: `Group ${index + 1}`, value: one.group, onInput: (group) => set(index, { group }), isMono: true, autoComplete: "off" }),
        h(Select, { label: "Team", value: one.teamId, onInput: (teamId) => set(index, { teamId }), options: teams, placeholder: "Choose one" }),
        h(Select, { label: "Role", value: String(one.role), onInput: (role) => set(index, { role }), options: rolesIn("team").toReversed().map((role) => ({ value: role, label: role })) }),
        button({ type: "button", "aria-label": `Remove group ${index + 1}`, onClick: () => onInput(groups.toSpliced(index, 1)) }, "Remove"),
      ),
    ),
    error ? p({ class: "error" }, error) : null,
    div(null, button({ type: "button", disabled: !teams.length, onClick: () => onInput([...groups, { group: "", teamId: "", role: "member" }]) }, teams.length ? "Add a group" : "Make a team first")),
  );
}
