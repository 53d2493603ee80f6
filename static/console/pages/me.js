/** The caller: who they are, what they may do, where they are signed in, and how the console looks in this browser. */

import { api } from "../api.js";
import { confirm } from "../components/dialog.js";
import { Check } from "../components/field.js";
import { GrantsOf } from "../components/grants.js";
import { Id } from "../components/id.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { FactsLine, Section } from "../components/section.js";
import { Sessions, device } from "../components/sessions.js";
import { Empty, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Time } from "../components/time.js";
import { holds } from "../permit.js";
import { counted } from "../number.js";
import { href } from "../route.js";
import { grants, me, signOut } from "../session.js";
import { hasKeys, theme } from "../theme.js";
import { h, tags } from "../ui.js";

/** @import { Session } from "agent-runtime/types" */

const { a, button, div, fieldset, input, label, legend, span } = tags;

const THEMES = /** @type {const} */ ([["system", "As the system"], ["light", "Light"], ["dark", "Dark"]]);

export default function Profile() {
  const who = me.value;
  const list = useList("own sessions", {}, (wanted, options) => api.me.sessions.list(wanted, options));
  if (!who) return h(Loading, {});
  const ends = holds("keys:write");
  const others = (list.rows ?? []).filter((one) => !one.current);
  const end = (/** @type {Session} */ one) =>
    one.current
      ? void signOut()
      : confirm({
          title: `End the session of ${device(one.userAgent)}?`,
          says: `Whoever uses it, at ${one.clientAddress}, is asked to sign in again. Keys go on.`,
          act: "End the session",
          run: async () => {
            await api.me.sessions.end(one.id);
            announce("Ended");
            list.reload();
          },
        });
  const endOthers = () =>
    confirm({
      title: "End all other sessions?",
      says: "You stay signed in here, and are asked to sign in again everywhere else. Keys go on.",
      act: "End the other sessions",
      run: async () => {
        let ended = 0;
        for await (const one of api.me.sessions.list({ limit: 200 })) {
          if (one.current) continue;
          await api.me.sessions.end(one.id).catch(ignoreGone);
          ended++;
        }
        announce(`${counted(ended, "session")} ended`);
        list.reload();
      },
    });
  return div(
    null,
    h(PageHead, { title: who.displayName, documentTitle: "Profile" }),
    h(FactsLine, {
      facts: [
        ["Email", who.email ?? "None"],
        ["Role in the tenant", who.tenantRole],
        ["Keys", a({ href: href("keys") }, "Your keys")],
        ["This session ends", who.credential.expiresAt ? h(Time, { at: who.credential.expiresAt }) : undefined],
        ["Id", h(Id, { id: who.id, what: "person" })],
      ],
    }),
    div(
      { class: "stack" },
      h(
        Section,
        { title: "Sessions", isFlush: true, actions: ends && (others.length || list.hasMore) ? button({ type: "button", onClick: endOthers }, "End all others") : null },
        h(Sessions, { label: "Where you are signed in", list, onEnd: ends ? end : undefined, empty: h(Empty, { title: "You are signed in by a key alone." }) }),
        h(Pager, { list }),
      ),
      h(Section, { title: "What you may do", isFlush: true }, grants.value ? h(GrantsOf, { grants: grants.value, whose: "You have" }) : h(Loading, {})),
      h(
        Section,
        { title: "This browser" },
        div(
          { class: "columns" },
          fieldset({ class: "field" }, legend(null, "Theme"), THEMES.map(([value, words]) => label({ key: value, class: "option" }, input({ type: "radio", name: "theme", value, checked: theme.value === value, onChange: () => (theme.value = value) }), span(null, words)))),
          h(Check, { label: "Single keys", hint: "Keys such as j, k and g r, outside of fields. Ctrl K works either way.", value: hasKeys.value, onInput: (isOn) => (hasKeys.value = isOn) }),
        ),
      ),
    ),
  );
}

/** A session that has ended meanwhile is ended. @param {any} error */
function ignoreGone(error) {
  if (error.status !== 404) throw error;
}
