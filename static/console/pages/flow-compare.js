/** Two versions of a flow: what changed in the definition. */

import { api } from "../api.js";
import { Diff } from "../components/diff.js";
import { PageHead } from "../components/page-head.js";
import { Section } from "../components/section.js";
import { Empty, Loaded } from "../components/states.js";
import { ChooseTwo } from "../components/versions.js";
import { useResource } from "../resource.js";
import { href, query } from "../route.js";
import { h, tags } from "../ui.js";

const { div } = tags;

/** @param {{ id: string }} props */
export default function FlowComparePage({ id }) {
  const { before, after } = query.value;
  const flow = useResource(`flow ${id}`, (options) => api.flows.get(id, options));
  const versions = useResource(`versions to compare of flow ${id}`, async (options) => (await api.flows.versions.list(id, { order: "desc", limit: 200 }, options)).data.map((one) => one.version));
  const both = useResource(before && after ? `compare flow ${id} ${before} ${after}` : null, async (options) => {
    const read = await Promise.all([before, after].map((version) => api.flows.versions.get(id, version ?? "", options)));
    return read.map((one) => JSON.stringify(one.definition, null, 2));
  });
  return div(
    { class: "stack" },
    h(PageHead, {
      title: before && after ? `What changed from ${before} to ${after}` : "Compare versions",
      crumbs: [{ title: "Flows", href: href("flows") }, { title: flow.data?.flowId ?? "Flow", href: href(`flows/${id}`) }],
    }),
    h(ChooseTwo, { versions: versions.data, before, after }),
    before && after
      ? h(Loaded, { of: both, notFound: "One of the two versions does not exist.", show: (/** @type {any} */ texts) => h(Section, { title: "Definition" }, h(Diff, { label: "Change of the definition", before: texts[0], after: texts[1], names: [before, after] })) })
      : h(Empty, { title: "Choose two versions." }),
  );
}
