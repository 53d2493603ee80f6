/**
 * Sign in: with a provider, a token, an enrolment code, or by itself in development.
 *
 * Guarantees: a code comes in the part of the address behind `#`, which no server sees; it is taken out of the address
 * before anything else. What is typed is kept nowhere.
 */

import { errorOf } from "../api.js";
import { Banner } from "../components/banner.js";
import { Field } from "../components/field.js";
import { Failure, Loaded } from "../components/states.js";
import { useAct, useResource } from "../resource.js";
import { href, path, query } from "../route.js";
import { signOutToo } from "../session.js";
import { fragment, h, tags, useEffect, useState } from "../ui.js";
import { signInForDevelopment, signInThrough, signInWithCode, signInWithToken, ways } from "../ways-in.js";

/** @import { Ways } from "../ways-in.js" */

const { a, button, div, form, h1, h2, img, input, main, p } = tags;

/** A code in the address: `#code=svc_en_…`, or the code alone. */
function codeOfAddress() {
  const said = location.hash.slice(1).replace(/^code=/, "");
  if (!said.startsWith("svc_en_")) return "";
  history.replaceState(history.state, "", location.pathname + location.search);
  return said;
}

const firstCode = codeOfAddress();

/** The page that one wants, but for this one. */
function page() {
  return path.value === "sign-in" ? href("") : location.pathname + location.search + location.hash;
}

/** What a callback of a provider says in the address. @type {Record<string, string>} */
const PROBLEMS = {
  "no-email": "The provider did not say your email address.",
  "email-not-vouched": "The provider does not vouch for your email address.",
  "email-not-covered": "The provider is not trusted for the domain of your email address.",
  "already-bound": "Your account here is bound to another sign-in.",
  "not-a-person": "No person here has your email address. Ask a tenant admin to add you.",
  "person-deactivated": "Your account here was deactivated.",
  "provider-refused": "The provider refused, or you went back.",
  "provider-unavailable": "The provider did not answer. Try it again.",
  "provider-not-believed": "What the provider said does not hold. Tell whoever operates the server the request below.",
  "flow-expired": "The sign-in took too long, or began in another window. Try it again.",
};

/** The whole page, outside of the frame. */
export function SignIn() {
  useEffect(() => {
    document.title = "Sign in · agent-runtime";
  }, []);
  const problem = query.value.problem;
  return main(
    { class: "sign-in", id: "main", tabIndex: -1 },
    div({ class: "brand" }, img({ src: "/console/assets/icon.svg", alt: "", width: 40, height: 40 }), h1(null, "Sign in to agent-runtime")),
    problem ? h(Banner, { tone: "bad", title: "You are not signed in", isAlert: true }, p(null, PROBLEMS[problem] ?? "The sign-in did not go through. Try it again."), query.value.request ? p({ class: "faint" }, `Request ${query.value.request}`) : null) : null,
    signOutToo.value && !problem ? h(SignedOut, { url: signOutToo.value }) : null,
    h(SignInForm, {}),
  );
}

/** Who shares this browser would come in by the provider again without being asked. @param {{ url: string }} props */
function SignedOut({ url }) {
  const { host } = new URL(url);
  return h(Banner, { tone: "good", title: "You are signed out here", actions: a({ class: "button", href: url, rel: "noreferrer" }, "Sign out there, too") }, p(null, `At ${host} you may still be signed in, in this browser.`));
}

/** @param {{ onDone?: () => void }} props */
export function SignInForm({ onDone }) {
  const offered = useResource("ways", () => ways());
  return h(Loaded, { of: offered, show: (/** @type {Ways} */ said) => h(Offered, { said, onDone }) });
}

/** @param {{ said: Ways, onDone?: () => void }} props */
function Offered({ said, onDone }) {
  const development = useAct(async () => {
    await signInForDevelopment();
    onDone?.();
  });
  if (said.problem === "other-address") return h(Banner, { tone: "wait", title: "Open the console at its own address", actions: a({ class: "button", href: said.publicUrl + page() }, "Go there") }, p(null, `People sign in at ${said.publicUrl}.`));
  if (said.problem === "not-configured") return h(Banner, { tone: "wait", title: "Sign-in is not turned on" }, p(null, "Whoever operates the server sets SVC_PUBLIC_URL to the address that people open."));
  const providers = said.providers ?? [];
  return div(
    { class: "stack" },
    said.developmentLogin
      ? fragment(button({ type: "button", class: "primary large", disabled: development.isBusy, onClick: () => development.run() }, "Sign in for development"), h(Failure, { error: development.error }))
      : null,
    // Over a page, whose browser is not to leave it.
    onDone && providers.length ? a({ class: "button large", href: href("sign-in"), target: "_blank" }, "Sign in in a new tab") : providers.map((provider) => h(Through, { key: provider.id, provider })),
    // Who comes by a link with a code is to use it.
    firstCode ? h(WithCode, { key: "code", onDone }) : null,
    said.tokenSignIn === "off" ? null : h(WithToken, { key: "token", onlyAdmins: said.tokenSignIn === "admins", onDone }),
    firstCode ? null : h(WithCode, { key: "code", onDone }),
  );
}

/** @param {{ provider: { id: string, name: string } }} props */
function Through({ provider }) {
  const act = useAct(() => {
    // After a try that came to nothing the provider asks which account it is to be.
    return signInThrough(provider.id, { returnTo: page(), again: Boolean(query.value.problem) });
  });
  return fragment(
    button({ type: "button", class: "large", disabled: act.isBusy, onClick: () => act.run() }, `Continue with ${provider.name}`),
    act.error ? h(Failure, { error: act.error }) : null,
  );
}

/** @param {{ onlyAdmins: boolean, onDone?: () => void }} props */
function WithToken({ onlyAdmins, onDone }) {
  const [token, setToken] = useState("");
  const act = useAct(async () => {
    await signInWithToken(token);
    onDone?.();
  });
  return form(
    { class: "card", onSubmit: (event) => (event.preventDefault(), token.trim() && act.run()) },
    div(
      { class: "body stack" },
      h2(null, "With an API key"),
      input({ type: "text", class: "hidden", name: "username", value: "API key", autoComplete: "username", tabIndex: -1, "aria-hidden": "true", readOnly: true }),
      h(Field, { label: "Your key", hint: onlyAdmins ? "Begins with svc_bt_. Tenant admins only." : "Begins with svc_bt_. Service accounts do not sign in.", type: "password", value: token, onInput: setToken, autoComplete: "current-password", error: refusal(act.error) }),
      act.error && !refusal(act.error) ? h(Failure, { error: act.error }) : null,
      button({ class: "primary", "aria-disabled": token.trim() && !act.isBusy ? undefined : "true" }, act.isBusy ? "Signing in …" : "Sign in"),
    ),
  );
}

/** @param {{ onDone?: () => void }} props */
function WithCode({ onDone }) {
  const [code, setCode] = useState(firstCode);
  const act = useAct(async () => {
    await signInWithCode(code);
    onDone?.();
  });
  const [isOpen, setOpen] = useState(Boolean(firstCode));
  if (!isOpen) return div({ class: "row" }, button({ type: "button", class: "link", onClick: () => setOpen(true) }, "I have an enrolment code"));
  return form(
    { class: "card", onSubmit: (event) => (event.preventDefault(), code.trim() && act.run()) },
    div(
      { class: "body stack" },
      h2(null, "With an enrolment code"),
      h(Field, { label: "The code", hint: "An admin gave it to you. It signs you in once.", value: code, onInput: setCode, autoComplete: "one-time-code", isMono: true, autofocus: true, error: refusal(act.error) }),
      act.error && !refusal(act.error) ? h(Failure, { error: act.error }) : null,
      button({ class: "primary", "aria-disabled": code.trim() && !act.isBusy ? undefined : "true" }, act.isBusy ? "Signing in …" : "Sign in"),
    ),
  );
}

/** What was typed does not hold: the sentence belongs to its field. @param {unknown} error */
function refusal(error) {
  if (!error) return undefined;
  const { status, message } = errorOf(error);
  return status === 401 || status === 400 || status === 403 ? message : undefined;
}
