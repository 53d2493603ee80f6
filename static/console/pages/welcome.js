/** Where somebody arrives who is in no project yet: it says whom to ask. */

import { PageHead } from "../components/page-head.js";
import { Empty } from "../components/states.js";
import { me, permissions } from "../session.js";
import { h, tags } from "../ui.js";

const { div } = tags;

export default function Welcome() {
  const said = permissions.value;
  return div(
    null,
    h(PageHead, { title: `Welcome${me.value ? `, ${me.value.displayName}` : ""}` }),
    h(Empty, { title: "You are in no project yet." }, said?.key.projectId ? "Your key is limited to one project. Ask its admins for a role on it." : "Ask an admin of a project, or of the tenant, for a role on it. What you may do appears here then."),
  );
}
