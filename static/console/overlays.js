/** What comes over the page: the palette, questions, the list of keys, and signing in again. */

import { Confirm, Dialog } from "./components/dialog.js";
import { Palette } from "./components/palette.js";
import { acts, isHelpOpen } from "./overlay-state.js";
import { unauthenticated } from "./api.js";
import { SignInForm } from "./pages/sign-in.js";
import { useAct } from "./resource.js";
import { href } from "./route.js";
import { offered } from "./routes.js";
import { hasEnded, refresh, signOut } from "./session.js";
import { hasKeys, theme } from "./theme.js";
import { fragment, h, tags, useEffect, useState } from "./ui.js";
import { resume } from "./ways-in.js";

const { button, dd, div, dl, dt, kbd, p } = tags;

const KEYS = [
  ["Ctrl K", "Find a page, an act or an id"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["/", "To the filters"],
  ["[  ]", "Newer and older page of a list"],
  ["?", "This list"],
];

/** What the palette has beside the acts of the page. @returns {import("./components/palette.js").Entry[]} */
function everywhere() {
  const themes = /** @type {const} */ (["system", "light", "dark"]);
  return [
    ...offered().map((route) => ({ title: route.title, about: "Page", icon: route.icon, keys: route.keys, href: href(route.pattern) })),
    ...themes.filter((one) => one !== theme.value).map((one) => ({ title: `Theme: ${one}`, about: "Act", icon: "sun", run: () => void (theme.value = one) })),
    { title: "List of keys", about: "Act", icon: "information", keys: "?", run: () => void (isHelpOpen.value = true) },
    { title: "Sign out", about: "Act", icon: "signin", run: signOut },
  ];
}

export function Overlays() {
  const entries = everywhere();
  return fragment(h(Palette, { entries }), h(Confirm, {}), isHelpOpen.value ? h(Help, { entries }) : null, hasEnded.value ? h(Ended, {}) : null);
}

/** @param {{ entries: import("./components/palette.js").Entry[] }} props */
function Help({ entries }) {
  const further = [...acts.value, ...entries.filter((entry) => entry.href)].flatMap(({ keys, title }) => (keys ? [[keys, title]] : []));
  return h(
    Dialog,
    { title: "Keys", onClose: () => void (isHelpOpen.value = false) },
    dl({ class: "facts rows keys" }, [...KEYS, ...further].map(([keys, what]) => div({ key: keys }, dt(null, kbd(null, keys)), dd(null, what)))),
    p({ class: "faint" }, hasKeys.value ? "Single keys do nothing in fields. Your menu turns them off." : "Single keys are off. Your menu turns them on."),
    div({ class: "row end" }, button({ type: "button", onClick: () => (isHelpOpen.value = false) }, "Close")),
  );
}

/** The session ended: the page stays as it is below. In development it begins again by itself. */
function Ended() {
  const [isTried, setTried] = useState(false);
  const look = useAct(refresh);
  useEffect(() => {
    resume().finally(() => setTried(true));
    // Who comes back may have signed in in another tab.
    const back = () => void (document.hidden || look.run());
    addEventListener("focus", back);
    document.addEventListener("visibilitychange", back);
    return () => {
      removeEventListener("focus", back);
      document.removeEventListener("visibilitychange", back);
    };
  }, []);
  if (!isTried) return null;
  return h(Dialog, { title: "Your session has ended", onClose: () => {}, isLocked: true }, p(null, "Sign in again, and go on where you were: what you have typed is still there."), h(SignInForm, { onDone: () => void (unauthenticated.value = false) }));
}
