/**
 * The frame of every page: the bar, the rail, the page itself, and what comes over it.
 *
 * Guarantees: a page that cannot be loaded, or that fails, says so and leaves the frame as it is. Going to a page moves focus
 * to it and says its title.
 */

import { api, quiet, updated } from "./api.js";
import { Banner } from "./components/banner.js";
import { Icon } from "./components/icon.js";
import { Menu } from "./components/menu.js";
import { PageHead, most99, waiting } from "./components/page-head.js";
import { useProjects } from "./components/projects-to-choose.js";
import { Empty, Loading } from "./components/states.js";
import { Status } from "./components/status.js";
import { laterStyles } from "./later-styles.js";
import { useHints } from "./live.js";
import { asked, isHelpOpen, isPaletteOpen } from "./overlay-state.js";
import { isReviewer, may } from "./permit.js";
import { go, href, match, path, query, setQuery, steps } from "./route.js";
import { AREAS, ROUTES } from "./routes.js";
import { hasEnded, me, permissions, signOut, state } from "./session.js";
import { hasKeys, theme } from "./theme.js";
import { h, signal, tags, useEffect, useRef, useState } from "./ui.js";

const { a, aside, button, div, h2, header, img, kbd, label, main, nav, option, p, section, select, span } = tags;

const isRailOpen = signal(false);

/** Where who has just signed in arrives. */
function home() {
  if (isReviewer() && ROUTES.some((route) => route.pattern === "inbox")) return "inbox";
  return may("read", "run") ? "runs" : "welcome";
}

/** Loaded where nobody is signed in. */
const signIn = () => import("./pages/sign-in.js").then((module) => ({ default: module.SignIn }));

/** How long after the first view the overlays are loaded, if nothing asks for one before. */
const OVERLAYS_AFTER_MS = 1000;

/** The overlays, which no first view needs. */
function Over() {
  const [overlays, setOverlays] = useState(/** @type {typeof import("./overlays.js") | undefined} */ (undefined));
  const isAsked = isPaletteOpen.value || isHelpOpen.value || asked.value !== null || hasEnded.value;
  useEffect(() => {
    if (overlays) return undefined;
    const begin = () => Promise.all([import("./overlays.js"), laterStyles()]).then(([module]) => setOverlays(() => module), () => {});
    const timer = setTimeout(begin, isAsked ? 0 : OVERLAYS_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isAsked]);
  return overlays ? h(overlays.Overlays, { entries: entries() }) : null;
}

export function Shell() {
  if (state.value === "out") return h(Lazy, { key: "sign-in", load: signIn, given: {} });
  return div(
    { class: "shell" },
    a({ class: "skip", href: "#main" }, "To the page"),
    h(Bar, {}),
    div({ class: "frame" }, h(Rail, {}), h(Page, {})),
    h(Status, {}),
    h(Over, {}),
  );
}

/** The pages that the caller is offered. */
function offered() {
  return ROUTES.filter((route) => route.rail && (route.may?.() ?? true));
}

/** @returns {import("./components/palette.js").Entry[]} */
function entries() {
  const themes = /** @type {const} */ (["system", "light", "dark"]);
  return [
    ...offered().map((route) => ({ title: route.title, about: "Page", icon: route.icon, keys: route.keys, href: href(route.pattern) })),
    ...themes.filter((one) => one !== theme.value).map((one) => ({ title: `Theme: ${one}`, about: "Act", icon: "sun", run: () => void (theme.value = one) })),
    { title: "List of keys", about: "Act", icon: "information", keys: "?", run: () => void (isHelpOpen.value = true) },
    { title: "Sign out", about: "Act", icon: "signin", run: signOut },
  ];
}

function Bar() {
  return header(
    { class: "bar" },
    button({ type: "button", class: "plain menu-button", "aria-label": "Pages", "aria-expanded": isRailOpen.value ? "true" : "false", onClick: () => (isRailOpen.value = !isRailOpen.value) }, h(Icon, { name: isRailOpen.value ? "close" : "menu" })),
    a({ class: "brand", href: href(""), "aria-label": "agent-runtime, first page" }, img({ src: "/console/assets/icon.svg", alt: "", width: 24, height: 24 }), span(null, "agent-runtime")),
    h(ProjectSwitch, {}),
    button({ type: "button", class: "search", title: "Find a page, an act or an id", "aria-keyshortcuts": "Control+K", onClick: () => (isPaletteOpen.value = true) }, h(Icon, { name: "search" }), span(null, "Find"), kbd(null, "Ctrl K")),
    h(Who, {}),
  );
}

/** The project that Work, Build and Improve show; all of them without one. It stays in the address. */
function ProjectSwitch() {
  const projects = useProjects();
  const chosen = query.value.project ?? "";
  if (!projects.length && !chosen) return null;
  return label(
    null,
    span({ class: "hidden" }, "Project"),
    select(
      { class: "project", value: chosen, onChange: (event) => setQuery({ project: event.currentTarget.value, cursor: null }) },
      option({ value: "" }, "All projects"),
      projects.map((one) => option({ key: one.value, value: one.value, selected: one.value === chosen }, one.label)),
      chosen && !projects.some((one) => one.value === chosen) ? option({ value: chosen, selected: true }, "Another project") : null,
    ),
  );
}

function Who() {
  const who = me.value;
  if (!who) return null;
  const themes = /** @type {const} */ (["system", "light", "dark"]);
  const initials = who.displayName.split(/\s+/).map((part) => part[0] ?? "").join("").slice(0, 2).toUpperCase() || "?";
  return h(Menu, {
    label: "You",
    class: "plain who",
    face: span({ class: "initials" }, initials),
    about: `${who.displayName}${who.email ? `, ${who.email}` : ""}`,
    items: [
      ...ROUTES.filter((route) => route.rail === "Me" && (route.may?.() ?? true)).map((route) => ({ title: route.title, href: href(route.pattern) })),
      "line",
      ...themes.map((one) => ({ title: { system: "Theme of the system", light: "Light", dark: "Dark" }[one], isChosen: theme.value === one, run: () => void (theme.value = one) })),
      "line",
      { title: "Single keys", isChosen: hasKeys.value, run: () => void (hasKeys.value = !hasKeys.value) },
      { title: "List of keys", run: () => void (isHelpOpen.value = true) },
      "line",
      { title: "Sign out", run: signOut },
    ],
  });
}

/** Counts what waits for a reviewer: after each change, and once a minute also while the page is hidden, whose title says it. */
function useWaiting() {
  const reviews = isReviewer();
  const look = () => void api.inbox.summary(quiet).then(({ approvals }) => void (waiting.value = approvals), () => {});
  useEffect(() => {
    if (!reviews) return undefined;
    look();
    const timer = setInterval(look, 60_000);
    return () => {
      clearInterval(timer);
      waiting.value = 0;
    };
  }, [reviews]);
  useHints(reviews ? ["approval"] : [], look);
}

function Rail() {
  useWaiting();
  const count = waiting.value;
  const project = query.value.project;
  const current = currentRoute();
  useEffect(() => {
    isRailOpen.value = false;
  }, [path.value]);
  const routes = offered();
  return aside(
    { class: "rail", "data-open": isRailOpen.value ? "true" : "false", onKeyDown: (event) => event.key === "Escape" && (isRailOpen.value = false) },
    nav(
      { "aria-label": "Pages" },
      AREAS.filter((area) => routes.some((route) => route.rail === area)).map((area) =>
        section(
          { key: area, "aria-label": area },
          h2({ "aria-hidden": "true" }, area),
          routes.filter((route) => route.rail === area).map((route) => {
            const isCurrent = current?.pattern === route.pattern || current?.pattern.startsWith(`${route.pattern}/`);
            const keeps = area !== "Settings" && area !== "Me" && project ? { project } : {};
            return a({ key: route.pattern, href: href(route.pattern, keeps), "aria-current": isCurrent ? "page" : undefined }, h(Icon, { name: route.icon ?? "right" }), span(null, route.title), route.pattern === "inbox" && count ? span({ class: "badge strong", "aria-label": `${count} waiting` }, most99(count)) : null);
          }),
        ),
      ),
    ),
  );
}

function currentRoute() {
  return ROUTES.find((route) => match(route.pattern, path.value));
}

/** @type {Map<() => Promise<any>, any>} */
const loaded = new Map();

function Page() {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const step = steps.value;
  useEffect(() => {
    if (step === 0) return;
    scrollTo(0, 0);
    element.current?.focus({ preventScroll: true });
  }, [step]);
  return main({ id: "main", ref: element, tabIndex: -1 }, updated.value ? h(Updated, {}) : null, h(Content, {}));
}

function Content() {
  const route = currentRoute();
  const where = path.value;
  useEffect(() => {
    if (where === "" || where === "sign-in") go(href(home()), { replace: true });
  }, [where]);
  if (where === "" || where === "sign-in") return null;
  if (where === "welcome") return h(Welcome, {});
  if (!route) return h(Nowhere, {});
  return h(Lazy, { key: route.pattern, load: route.load, given: match(route.pattern, where) ?? {}, isFirst: route.isFirst });
}

/** @param {{ load: () => Promise<{ default: any }>, given: Record<string, string>, isFirst?: boolean }} props */
function Lazy({ load, given, isFirst = false }) {
  const [, draw] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (undefined));
  const component = loaded.get(load);
  const fetchIt = () => {
    setError(undefined);
    Promise.all([load(), isFirst ? null : laterStyles()]).then(([module]) => (loaded.set(load, module.default), draw((count) => count + 1)), setError);
  };
  useEffect(() => {
    if (!component) fetchIt();
  }, []);
  if (error) return h(Banner, { tone: "bad", title: "This page could not be loaded", isAlert: true, actions: button({ type: "button", onClick: () => location.reload() }, "Reload") }, p(null, "The server does not answer, or the console was updated."));
  return component ? h(component, given) : h(Loading, {});
}

function Updated() {
  return h(Banner, { tone: "busy", title: "The console was updated", actions: button({ type: "button", onClick: () => location.reload() }, "Reload") }, "What you have typed stays until you do.");
}

function Nowhere() {
  return div(null, h(PageHead, { title: "No page here" }), h(Empty, { title: "The console has no page at this address.", action: a({ class: "button", href: href("") }, "To the first page") }));
}

function Welcome() {
  const said = permissions.value;
  return div(
    null,
    h(PageHead, { title: `Welcome${me.value ? `, ${me.value.displayName}` : ""}` }),
    h(Empty, { title: "You are in no project yet." }, said?.key.projectId ? "Your key is limited to one project. Ask its admins for a role on it." : "Ask an admin of a project, or of the tenant, for a role on it. What you may do appears here then."),
  );
}
