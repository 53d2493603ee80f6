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
import { most99, titled, waiting } from "./components/page-head.js";
import { useProjects } from "./components/projects-to-choose.js";
import { Loading } from "./components/states.js";
import { Status } from "./components/status.js";
import { laterStyles } from "./later-styles.js";
import { useHints } from "./live.js";
import { asked, isHelpOpen, isPaletteOpen } from "./overlay-state.js";
import { isReviewer, licenseWarning, may } from "./permit.js";
import { chooseProject, chosenProject, go, href, match, path, step } from "./route.js";
import { AREAS, ROUTES, offered } from "./routes.js";
import { hasEnded, me, signOut, state } from "./session.js";
import { hasKeys, theme } from "./theme.js";
import { h, signal, tags, useEffect, useRef, useState } from "./ui.js";

const { a, aside, button, div, h2, header, img, kbd, label, main, nav, option, p, section, select, span } = tags;

const isRailOpen = signal(false);
/** An overlay was asked for, and cannot be loaded. */
const isBroken = signal(false);

/** Where who has just signed in arrives. */
function home() {
  if (isReviewer() && ROUTES.some((route) => route.pattern === "inbox")) return "inbox";
  return may("read", "run") ? "runs" : "welcome";
}

/** Loaded where nobody is signed in. */
const signIn = () => import("./pages/sign-in.js").then((module) => ({ default: module.SignIn }));

/** Loaded where the address is none of a page. */
const nowhere = () => import("./pages/nowhere.js");

/** How long after the first view the overlays are loaded, if nothing asks for one before. */
const OVERLAYS_AFTER_MS = 1000;

/** The overlays, which no first view needs. */
function Over() {
  const [overlays, setOverlays] = useState(/** @type {typeof import("./overlays.js") | undefined} */ (undefined));
  const isAsked = isPaletteOpen.value || isHelpOpen.value || asked.value !== null || hasEnded.value;
  useEffect(() => {
    if (overlays) return undefined;
    const failed = () => {
      isBroken.value = isAsked;
      if (isAsked) scrollTo(0, 0);
    };
    const begin = () => Promise.all([import("./overlays.js"), laterStyles()]).then(([module]) => (setOverlays(() => module), (isBroken.value = false)), failed);
    const timer = setTimeout(begin, isAsked ? 0 : OVERLAYS_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isAsked]);
  return overlays ? h(overlays.Overlays, {}) : null;
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

/** The project that Work, Build and Improve show; all of them without one. */
function ProjectSwitch() {
  const projects = useProjects();
  const chosen = chosenProject.value;
  if (!projects.length && !chosen) return null;
  return label(
    null,
    span({ class: "hidden" }, "Project"),
    select(
      { class: "project", value: chosen, onChange: (event) => chooseProject(event.currentTarget.value) },
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

function closeRail() {
  isRailOpen.value = false;
  // On a wide screen there is no such button, and the rail stays.
  /** @type {HTMLElement | null} */ (document.querySelector(".menu-button"))?.focus();
}

function Rail() {
  useWaiting();
  const count = waiting.value;
  const current = currentRoute();
  useEffect(() => {
    isRailOpen.value = false;
  }, [path.value]);
  const routes = offered();
  return aside(
    { class: "rail", "data-open": isRailOpen.value ? "true" : "false", onKeyDown: (event) => event.key === "Escape" && closeRail() },
    nav(
      { "aria-label": "Pages" },
      AREAS.filter((area) => routes.some((route) => route.rail === area)).map((area) =>
        section(
          { key: area, "aria-label": area },
          h2({ "aria-hidden": "true" }, area),
          routes.filter((route) => route.rail === area).map((route) => {
            const isCurrent = current?.pattern === route.pattern || current?.pattern.startsWith(`${route.pattern}/`);
            return a({ key: route.pattern, href: href(route.pattern), "aria-current": isCurrent ? "page" : undefined }, h(Icon, { name: route.icon ?? "right" }), span(null, route.title), route.pattern === "inbox" && count ? span({ class: "badge strong", "aria-label": `${count} waiting` }, most99(count)) : null);
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
  const to = step.value;
  useEffect(() => {
    const on = element.current;
    if (!to || !on) return;
    const link = to.link && /** @type {HTMLElement | null} */ (on.querySelector(`a[href="${CSS.escape(to.link)}"]`));
    (link || on).focus({ preventScroll: true });
    if (to.top !== undefined) scrollTo(0, to.top);
  }, [to]);
  return main(
    { id: "main", ref: element, tabIndex: -1 },
    span({ class: "hidden", role: "status" }, titled.value),
    isBroken.value ? h(Unloaded, { title: "A part of the console could not be loaded" }) : null,
    updated.value ? h(Updated, {}) : null,
    licenseWarning() && currentRoute()?.rail === "Settings" ? h(Banner, { tone: "wait", title: "The license of this server" }, p(null, `${licenseWarning()} Whoever operates the server does that.`)) : null,
    h(Content, {}),
  );
}

function Content() {
  const route = currentRoute();
  const where = path.value;
  useEffect(() => {
    if (where === "" || where === "sign-in") go(href(home()), { replace: true });
  }, [where]);
  if (where === "" || where === "sign-in") return null;
  if (!route) return h(Lazy, { key: "nowhere", load: nowhere, given: {} });
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
  if (error) return h(Unloaded, { title: "This page could not be loaded" });
  return component ? h(component, given) : h(Loading, {});
}

const reload = () => button({ type: "button", onClick: () => location.reload() }, "Reload");

/** @param {{ title: string }} props */
function Unloaded({ title }) {
  return h(Banner, { tone: "bad", title, isAlert: true, actions: reload() }, p(null, "The server does not answer, or the console was updated."));
}

function Updated() {
  return h(Banner, { tone: "busy", title: "The console was updated", actions: reload() }, "What you have typed stays until you do.");
}
