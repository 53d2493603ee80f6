/** An identity provider: for whom it speaks, what its groups are here, and what to register there. */

import { api } from "../api.js";
import { Banner } from "../components/banner.js";
import { CheckSteps } from "../components/check-steps.js";
import { confirm } from "../components/dialog.js";
import { Copy } from "../components/copy.js";
import { Id } from "../components/id.js";
import { ProviderForm } from "../components/identity-provider-form.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Facts, FactsLine, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { counted } from "../number.js";
import { holds, mayGrant } from "../permit.js";
import { useAct, useResource } from "../resource.js";
import { go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";
import { OperatorsLock } from "./sign-in-settings.js";

/** @import { IdentityProvider, IdentityProviderCheck, IdentityProviderGroup } from "agent-runtime/types" */

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
          ? [h(Menu, { key: "more", label: "More acts", face: "More", items: [{ title: "Delete …", isDanger: true, run: remove }] }), holds("keys:write") ? button({ key: "change", type: "button", onClick: () => setChanging(true) }, "Change") : null]
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
      mayGrant("tenant") ? h(Check, { id }) : null,
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
        h(MissingGroups, { provider: one }),
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

const UNTIL = " This is shown until the person has signed in with their groups, or the provider is changed here.";

/** What to do where a sign-in lacked the person's groups. @param {{ provider: IdentityProvider }} props */
function MissingGroups({ provider: { groupsAbsentAt, groupsLeftOutAt, groupsClaim } }) {
  return fragment(
    groupsAbsentAt
      ? h(Banner, { tone: "wait", title: "The provider did not name somebody's groups" }, p(null, "At the last such sign-in, ", h(Time, { at: groupsAbsentAt }), ", the claim ", code(null, groupsClaim), " was absent, so the person's teams stayed as they were. Let the provider put it into the ID token or userinfo, also where a person is in no group. Some providers take a scope for it, which is to stand here.", UNTIL))
      : null,
    groupsLeftOutAt
      ? h(Banner, { tone: "wait", title: "The provider left somebody's groups out" }, p(null, "At the last such sign-in, ", h(Time, { at: groupsLeftOutAt }), ", the person was in more groups than it names, so their teams stayed as they were. Let it name only the groups that stand here.", UNTIL))
      : null,
  );
}

/** What each step of a check is about. @type {Record<string, string>} */
const STEPS = {
  discovery: "Its document",
  issuer: "The issuer that it names",
  endpoints: "Its addresses",
  keys: "Its keys",
  algorithms: "How it signs",
  pkce: "PKCE",
  clock: "Its clock",
  callback: "The address to come back to",
};

/** Asks the provider what a sign-in needs of it, and says of each step what was found. @param {{ id: string }} props */
function Check({ id }) {
  const [found, setFound] = useState(/** @type {IdentityProviderCheck | null} */ (null));
  const act = useAct(async () => {
    const said = await api.identityProviders.check(id);
    setFound(said);
    const bad = said.steps.filter((step) => step.ok === false).length;
    announce(bad ? `The check found ${counted(bad, "fault")}` : "A sign-in passes every step");
  });
  const lead = "The server asks the provider as a sign-in does, without a person. Only a sign-in shows whether the provider knows the address to come back to and the client's secret.";
  return h(
    Section,
    { title: "Check", isFlush: true, actions: button({ type: "button", "aria-disabled": act.isBusy ? "true" : undefined, onClick: () => act.run() }, act.isBusy ? "Asking …" : found ? "Check again" : "Check") },
    act.error ? div({ class: "pad" }, h(Failure, { error: act.error })) : null,
    found ? h(CheckSteps, { label: "Steps of the check", steps: found.steps, titles: STEPS }) : null,
    p({ class: "faint pad" }, lead),
  );
}
