/** Signs of 16 px, drawn by lines. They say nothing on their own: a word stands beside each, or its button has a label. */

import { tags } from "../ui.js";

/** @type {Record<string, string>} */
const PATHS = {
  inbox: "M2 9l2-6h8l2 6v4H2zM2 9h4l1 2h2l1-2h4",
  approvals: "M8 1.8l5.2 2v4c0 3-2.2 5.3-5.2 6.4C5 13.100 2.800 10.800 2.800 7.800v-4zM5.700 8l1.700 1.700 3-3.400",
  runs: "M3 3.500h7M5 8h8M3 12.500h5M1.500 3.500h0M1.500 12.500h0",
  conversations: "M2 3h12v8H7l-3 2.500V11H2z",
  projects: "M2 4h4l1.500 1.500H14V13H2z",
  agents: "M4 6h8v6.500H4zM8 6V3M6.500 9h0M9.500 9h0M2 8.500v2M14 8.500v2",
  flows: "M3 3h3v3H3zM10 10h3v3h-3zM10 3h3v3h-3zM6 4.500h4M11.500 6v4",
  tools: "M10 2.500a3.500 3.500 0 0 0-3 5L2.500 12 4 13.500 8.500 9a3.500 3.500 0 0 0 5-3l-2 2-2.300-.700L8.500 5z",
  usage: "M2.500 13.500v-5M6.200 13.500v-11M9.800 13.500v-8M13.500 13.500V7",
  people: "M6 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1.500 13.500c0-2.500 2-4 4.500-4s4.500 1.500 4.500 4M10.500 3.300a2.500 2.500 0 0 1 0 4.400M12 9.800c1.500.600 2.500 2 2.500 3.700",
  teams: "M8 7a2.200 2.200 0 1 0 0-4.400A2.200 2.200 0 0 0 8 7zM3.500 13.500C3.500 11 5.500 9 8 9s4.500 2 4.500 4.500z",
  accounts: "M3 5.500h10v7H3zM5.500 5.500V3h5v2.500M6 9h0M10 9h0",
  reviewers: "M1.500 8S4 3.500 8 3.500 14.500 8 14.500 8 12 12.500 8 12.500 1.500 8 1.500 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  webhooks: "M8 5.500a2 2 0 1 1 1.600-.800l2 4.300M4 13a2 2 0 1 1 .500-4M11.700 9a2 2 0 1 1-.700 3.800H6",
  secrets: "M3.500 7.500h9v6h-9zM5.500 7.500v-2a2.500 2.500 0 0 1 5 0v2",
  providers: "M8 2l5.500 3v6L8 14l-5.500-3V5zM2.500 5L8 8l5.500-3M8 8v6",
  signin: "M9 3h4v10H9M2.500 8h7M7 5.500L9.500 8 7 10.500",
  audit: "M4 2h8v12H4zM6 5h4M6 8h4M6 11h2",
  orgs: "M2.500 13.500V4L8 2l5.500 2v9.500M1.500 13.500h13M5.500 6h1M9.500 6h1M5.500 9h1M9.500 9h1M7 13.500V11h2v2.500",
  keys: "M10 9a3.500 3.500 0 1 0-3.300-2.300L2 11.400V14h2.600v-1.600h1.600v-1.600L7.500 9.500M11 5h0",
  sessions: "M2 3h12v8H2zM6 13.500h4M8 11v2.500",
  profile: "M8 8a2.800 2.800 0 1 0 0-5.600A2.800 2.800 0 0 0 8 8zM2.500 14c0-3 2.500-4.500 5.500-4.500s5.500 1.500 5.500 4.500",
  search: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.300 10.300L14 14",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M3.500 3.500l9 9M12.500 3.500l-9 9",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  check: "M3 8.500l3.300 3.300L13 4.700",
  more: "M3.500 8h0M8 8h0M12.500 8h0",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  down: "M3 6l5 5 5-5",
  warning: "M8 2l6.500 11.500h-13zM8 6.500v3.500M8 12h0",
  information: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.500V11M8 5h0",
  stop: "M4 4h8v8H4z",
  again: "M13 8a5 5 0 1 1-1.500-3.500L13 6M13 2.500V6H9.500",
  plus: "M8 3v10M3 8h10",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.200l2.200 1.300",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  wrap: "M2 4h12M2 8h9.500a2 2 0 0 1 0 4H8M9.500 10.500L8 12l1.500 1.500M2 12h3",
};

/** @param {{ name: string }} props */
export function Icon({ name }) {
  return tags.svg(
    { class: "icon", width: 16, height: 16, viewBox: "0 0 16 16", fill: "none", stroke: "currentColor", "stroke-width": 1.4, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" },
    tags.path({ d: PATHS[name] ?? PATHS.projects }),
  );
}
