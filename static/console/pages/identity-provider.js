/** An identity provider: for whom it speaks, what its groups are here, and what to register there. */

import { api } from "../api.js";
import { confirm } from "../components/dialog.js";
import { Copy } from "../components/copy.js";
import { Id } from "../components/id.js";
import { ProviderForm } from "../components/identity-provider-form.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Facts, FactsLine, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { mayGrant } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { h, tags, useState } from "../ui.js";
import { OperatorsLock } from "./sign-in-settings.js";

/** @import { IdentityProviderGroup } from "agent-runtime/types" */

const { button, code, div, p, span } = tags;

/** @param {{ identityProviderId: string }} props */
export default function IdentityProviderPage({ identityProviderId: id }) {
  const provider = useResource(`identity provider ${id}`, (options) => api.identityProviders.get(id, options));
  const settings = useResource("sign-in settings", (options) => api.signInSettings.get(options));
  const names = useNames(["user", "team"]);
  const [isChanging, setChanging] = useState(false);
  const crumbs = [{ title: "Sign-in", href: href("sign-in-settings") }];
  if (!provider.data) return h(Unread, { title: "Identity provider", crumbs, of: provider, notFound: "No identity provider has this id." });
  const one = provider.data;
  const isOperators = settings.data?.managedBy === "operator";
  const remove = () =>
    confirm({
      title: `Delete ${one.name}?`,
      says: "At once: nobody signs in by it, the sessions that it opened end, and so do the memberships of teams that its groups gave. People stay, with their keys. Who comes by another provider is bound anew.",
      act: "Delete",
      typed: one.name,
      run: async () => {
        await api.identityProviders.delete(id);
        announce("Deleted");
        go(href("sign-in-settings"));
      },
    });
  return div(
    null,
    h(PageHead, {
      title: one.name,
      crumbs,
      state: one.serves ? h(State, { state: "active", word: "signs in" }) : h(State, { state: "deactivated", word: "not used" }),
      actions:
        mayGrant("tenant") && settings.data && !isOperators
          ? [h(Menu, { key: "more", label: "More acts", face: "More", items: [{ title: "Delete …", isDanger: true, run: remove }] }), button({ key: "change", type: "button", onClick: () => setChanging(true) }, "Change")]
          : undefined,
    }),
    isOperators ? h(OperatorsLock, {}) : null,
    h(FactsLine, {
      facts: [
        ["Kept by", one.managedBy === "operator" ? "The operator's file" : "The tenant"],
        ["Registered", h(Time, { at: one.createdAt })],
        ["By", one.createdBy ? h(Name, { id: one.createdBy, names }) : undefined],
        ["Id", h(Id, { id: one.id, what: "identity provider" })],
      ],
    }),
    div(
      { class: "stack" },
      h(Section, { title: "At the provider" }, h(Facts, {
        rows: true,
        facts: [
          ["Address to come back to", one.callbackUrl ? span({ class: "subject" }, code(null, one.callbackUrl), h(Copy, { text: one.callbackUrl, label: "Copy the address" })) : "The server has no address of its own yet: SVC_PUBLIC_URL gives it one."],
          ["Issuer", code(null, one.issuer)],
          ["Client id", code(null, one.clientId)],
          ["Client secret", one.clientSecretRef ? code(null, `${one.clientSecretRef.envName}/${one.clientSecretRef.name}`) : one.managedBy === "operator" ? "As the operator's file says" : "None: a public client"],
          ["Scopes", ["openid", "email", "profile", ...one.scopes].map((scope) => span({ key: scope, class: "tag beside" }, scope))],
        ],
      })),
      h(Section, { title: "Who signs in by it" }, h(Facts, {
        rows: true,
        facts: [
          ["Email domains", one.emailDomains.join(", ") || "None: nobody signs in by it for the first time"],
          ["An email counts", one.emailTrust === "provider" ? "Always: nobody chooses one of their own there" : "When the provider says that it verified it"],
          ["Who was not added", one.createsPeople ? "Becomes a member" : "Is refused"],
        ],
      })),
      h(
        Section,
        { title: "Groups that are teams here", isFlush: true },
        h(Table, {
          label: "Groups of the provider",
          rows: one.groups,
          rowKey: (/** @type {IdentityProviderGroup} */ group) => `${group.group} ${group.teamId}`,
          columns: [
            { title: "Group", show: (/** @type {IdentityProviderGroup} */ group) => code(null, group.group) },
            { title: "Team", show: (/** @type {IdentityProviderGroup} */ group) => h(Name, { id: group.teamId, names }) },
            { title: "Role", show: (/** @type {IdentityProviderGroup} */ group) => group.role },
          ],
          empty: h(Empty, { title: one.groupsClaim ? "No group is a team here." : "Groups are not asked for." }),
        }),
        one.groupsClaim ? p({ class: "faint pad" }, "They come with the claim ", code(null, one.groupsClaim), ".") : null,
      ),
    ),
    isChanging ? h(ProviderForm, { provider: one, onClose: () => setChanging(false), onSaved: provider.set }) : null,
  );
}
