/** Signs of 16 px, drawn by lines. They say nothing on their own: a word stands beside each, or its button has a label. */

import { tags } from "../ui.js";

/** @type {Record<string, string>} */
const PATHS = {
  inbox: "M2 9l2-6h8l2 6v4H2zM2 9h4l1 2h2l1-2h4",
  approvals: "M8 1.8l5.2 2v4c0 3-2.2 5.3-5.2 6.4C5 13.1 2.8 10.8 2.8 7.8v-4zM5.7 8l1.7 1.7 3-3.4",
  runs: "M3 3.5h7M5 8h8M3 12.5h5M1.5 3.5h0M1.5 12.5h0",
  conversations: "M2 3h12v8H7l-3 2.5V11H2z",
  projects: "M2 4h4l1.5 1.5H14V13H2z",
  agents: "M4 6h8v6.5H4zM8 6V3M6.5 9h0M9.5 9h0M2 8.5v2M14 8.5v2",
  flows: "M3 3h3v3H3zM10 10h3v3h-3zM10 3h3v3h-3zM6 4.5h4M11.5 6v4",
  tools: "M10 2.5a3.5 3.5 0 0 0-3 5L2.5 12 4 13.5 8.5 9a3.5 3.5 0 0 0 5-3l-2 2-2.3-.7L8.5 5z",
  guardrails: "M8 1.8l5.2 2v4c0 3-2.2 5.3-5.2 6.4C5 13.1 2.8 10.8 2.8 7.8v-4zM5 6h6M5 9h6",
  policies: "M3.5 2h9v12h-9zM6 5.5h4M6 8l1 1 2-2M6 11.5h4",
  usage: "M2.5 13.5v-5M6.2 13.5v-11M9.8 13.5v-8M13.5 13.5V7",
  people: "M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 3.3a2.5 2.5 0 0 1 0 4.4M12 9.8c1.5.6 2.5 2 2.5 3.7",
  teams: "M8 7a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 8 7zM3.5 13.5C3.5 11 5.5 9 8 9s4.5 2 4.5 4.5z",
  accounts: "M3 5.5h10v7H3zM5.5 5.5V3h5v2.5M6 9h0M10 9h0",
  reviewers: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  webhooks: "M8 5.5a2 2 0 1 1 1.6-.8l2 4.3M4 13a2 2 0 1 1 .5-4M11.7 9a2 2 0 1 1-.7 3.8H6",
  secrets: "M3.5 7.5h9v6h-9zM5.5 7.5v-2a2.5 2.5 0 0 1 5 0v2",
  environments: "M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11zM4.5 5h0M4.5 11h0",
  providers: "M8 2l5.5 3v6L8 14l-5.5-3V5zM2.5 5L8 8l5.5-3M8 8v6",
  signin: "M9 3h4v10H9M2.5 8h7M7 5.5L9.5 8 7 10.5",
  audit: "M4 2h8v12H4zM6 5h4M6 8h4M6 11h2",
  orgs: "M2.5 13.5V4L8 2l5.5 2v9.5M1.5 13.5h13M5.5 6h1M9.5 6h1M5.5 9h1M9.5 9h1M7 13.5V11h2v2.5",
  keys: "M10 9a3.5 3.5 0 1 0-3.3-2.3L2 11.4V14h2.6v-1.6h1.6v-1.6L7.5 9.5M11 5h0",
  sessions: "M2 3h12v8H2zM6 13.5h4M8 11v2.5",
  profile: "M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8zM2.5 14c0-3 2.5-4.5 5.5-4.5s5.5 1.5 5.5 4.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3L14 14",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M3 8.5l3.3 3.3L13 4.7",
  more: "M3.5 8h0M8 8h0M12.5 8h0",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  down: "M3 6l5 5 5-5",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3.5M8 12h0",
  information: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5h0",
  stop: "M4 4h8v8H4z",
  again: "M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5",
  plus: "M8 3v10M3 8h10",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.2l2.2 1.3",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  wrap: "M2 4h12M2 8h9.5a2 2 0 0 1 0 4H8M9.5 10.5L8 12l1.5 1.5M2 12h3",
};

/** @param {{ name: string }} props */
export function Icon({ name }) {
  return tags.svg(
    { class: "icon", width: 16, height: 16, viewBox: "0 0 16 16", fill: "none", stroke: "currentColor", "stroke-width": 1.4, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" },
    tags.path({ d: PATHS[name] ?? PATHS.projects }),
  );
}
