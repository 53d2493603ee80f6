/** Keys: the caller's own API keys. Everybody makes their own (specification 2.1). */

import { api } from "../api.js";
import { ApiKeys, MakeKey } from "../components/api-keys.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useProjects } from "../components/projects-to-choose.js";
import { useActs } from "../components/acts.js";
import { holds } from "../permit.js";
import { me } from "../session.js";
import { h, tags, useState } from "../ui.js";

const { button, div } = tags;

export default function Keys() {
  const [isMaking, setMaking] = useState(false);
  const names = useNames(["project"]);
  const list = useList("own keys", {}, (wanted, options) => api.tokens.list(wanted, options));
  const projects = useProjects();
  const mints = holds("keys:write");
  const make = mints ? button({ type: "button", class: "primary", onClick: () => setMaking(true) }, "Make a key") : null;
  useActs(mints ? [{ title: "Make a key", about: "Act", icon: "plus", run: () => setMaking(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "Your keys", lead: "A key lets the command line and programs act as you, within its limits. Make one for each place that uses one, so that it can be revoked alone.", actions: make }),
    h(ApiKeys, { label: "Your keys, newest first", list, names, mayWrite: mints, credentialId: me.value?.credential.id, onRevoke: (token) => api.tokens.revoke(token.id), empty: mints ? "You have no key yet." : "You have no key, and this session may not make one." }),
    h(Pager, { list }),
    isMaking
      ? h(MakeKey, { whose: "Your key", projects, mint: (body) => api.tokens.create(body), onClose: () => setMaking(false), onMade: list.reload })
      : null,
  );
}
