/** What comes over the page: the palette, questions, the list of keys, and signing in again. */

import { Confirm, Dialog } from "./components/dialog.js";
import { Palette } from "./components/palette.js";
import { KEYS } from "./keys.js";
import { acts, isHelpOpen } from "./overlay-state.js";
import { unauthenticated } from "./api.js";
import { SignInForm } from "./pages/sign-in.js";
import { hasEnded, resume } from "./session.js";
import { hasKeys } from "./theme.js";
import { fragment, h, tags, useEffect, useState } from "./ui.js";

const { button, dd, div, dl, dt, kbd, p } = tags;

/** @param {{ entries: import("./components/palette.js").Entry[] }} props what the palette has beside the acts of the page */
export function Overlays({ entries }) {
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
  useEffect(() => {
    resume().finally(() => setTried(true));
  }, []);
  if (!isTried) return null;
  return h(Dialog, { title: "Your session has ended", onClose: () => {}, isLocked: true }, p(null, "Sign in again, and go on where you were: what you have typed is still there."), h(SignInForm, { onDone: () => void (unauthenticated.value = false) }));
}
