/**
 * What stands in place of an answer: nothing yet, nothing at all, or why not.
 *
 * Guarantees: an error says a sentence, what to do, whom to ask, and the request's id. What the server may answer in a
 * moment is asked again by itself. What is not as somebody has read it can be read again, and what they typed stays. Loading
 * shows nothing for 200 ms.
 */

import { readAgain, useAct } from "../resource.js";
import { h, tags, useAfter, useEffect, useRef, useState } from "../ui.js";
import { now, serverNow } from "../time.js";
import { Banner } from "./banner.js";
import { Id } from "./id.js";

/** @import { AgentRuntimeError } from "agent-runtime" */
/** @import { Child } from "../ui.js" */
/** @template T @typedef {import("../resource.js").Resource<T>} Resource */

const { button, div, p, small, span, strong } = tags;

/** @param {{ title: string, children?: Child, action?: Child }} props */
export function Empty({ title, children, action }) {
  return div({ class: "empty" }, strong(null, title), children ? p(null, children) : null, action);
}

/** Grey lines, once it takes 200 ms. @param {{ lines?: number }} props */
export function Loading({ lines = 4 }) {
  const isLate = useAfter(200);
  return div({ class: "loading", "aria-busy": "true" }, span({ class: "hidden" }, "Loading"), isLate ? Array.from({ length: lines }, (_, key) => span({ class: "bone", key })) : null);
}

/** @type {Record<number, string>} */
const TITLES = {
  400: "The server did not take this",
  403: "You may not do this",
  404: "Not found",
  409: "This has changed in the meantime",
  422: "The server did not take this",
  429: "Too many requests",
  501: "Not turned on",
};

/** @type {Record<string, string>} */
const TITLES_OF_CODES = {
  "already-exists": "There is one already",
  "last-owner": "Somebody has to stay",
  "last-admin": "Somebody has to stay",
};

/** @param {AgentRuntimeError} error */
function titleOf(error) {
  if (error.serverCode === "authorization-unavailable") return "Who may do what cannot be checked just now";
  if (error.code === "network" || error.code === "timeout") return "The server does not answer";
  if (error.code === "unavailable") return "The server cannot do this just now";
  return TITLES_OF_CODES[error.serverCode ?? ""] ?? TITLES[error.status ?? 0] ?? "Something went wrong";
}

/** @param {AgentRuntimeError} error */
function adviceOf(error) {
  if (error.status === 501) return "Whoever operates the server sets what the sentence names.";
  if (error.serverCode === "internal") return "Tell whoever operates the server; the log has the cause under the request's id.";
  return null;
}

/** Between what is tried by itself. */
const FIRST_WAIT_MS = 8000;
const LONGEST_WAIT_MS = 60_000;

/** Whether the same request may go well in a moment. @param {AgentRuntimeError} error */
function passes(error) {
  return error.code === "network" || error.code === "timeout" || error.code === "unavailable";
}

/**
 * An error, with what to do. With `retry`, what may go well in a moment is tried again by itself, with a countdown that
 * grows with each failure.
 * @param {{ error: AgentRuntimeError | undefined, retry?: () => void, notFound?: string }} props
 */
export function Failure({ error, retry, notFound }) {
  if (!error) return null;
  const advice = adviceOf(error);
  const sentence = error.status === 404 && notFound ? notFound : error.message;
  return h(
    Banner,
    { tone: error.status === 501 ? "idle" : "bad", title: titleOf(error), isAlert: true, actions: retry && error.status !== 404 && error.status !== 409 ? h(Retry, { error, retry }) : null },
    p(null, sentence),
    advice ? p(null, advice) : null,
    error.status === 403 ? h(Asked, { error }) : null,
    error.status === 409 ? h(Again, { key: error.requestId }) : null,
    error.requestId ? small(null, "Request ", h(Id, { id: error.requestId })) : null,
  );
}

/** Whom to ask: most people never see it, so that it is loaded then. @param {{ error: AgentRuntimeError }} props */
function Asked({ error }) {
  const [whom, setWhom] = useState(/** @type {typeof import("./whom-to-ask.js") | undefined} */ (undefined));
  useEffect(() => {
    // Without it the sentence stands alone.
    import("./whom-to-ask.js").then((module) => setWhom(() => module), () => {});
  }, []);
  return whom ? h(whom.WhomToAsk, { error }) : null;
}

/** Shows what the server has now, beside what was typed. */
function Again() {
  const [said, say] = useState("");
  const again = useAct(async () => {
    say("");
    say((await readAgain()) ? " The page shows what the server has now. What you typed is as you left it." : " Not all of it could be read. What you typed is as you left it.");
  });
  return p(null, button({ type: "button", onClick: () => again.run() }, again.isBusy ? "Read it again …" : "Read it again"), said);
}

/** @param {{ error: AgentRuntimeError, retry: () => void }} props */
function Retry({ error, retry }) {
  const { current } = useRef({ error: /** @type {unknown} */ (null), due: 0, waitMs: FIRST_WAIT_MS });
  if (current.error !== error) {
    current.error = error;
    // What failed meanwhile, by the page's clock or by hand, does not put it off.
    if (serverNow() >= current.due) {
      current.due = serverNow() + Math.max(error.retryAfterMs ?? 0, current.waitMs);
      current.waitMs = Math.min(2 * current.waitMs, LONGEST_WAIT_MS);
    }
  }
  const byItself = passes(error);
  const seconds = Math.max(0, Math.ceil((current.due - now.value) / 1000));
  useEffect(() => {
    if (byItself && seconds === 0) retry();
  }, [byItself, seconds === 0]);
  return button({ type: "button", onClick: retry }, byItself ? `Try again (${seconds} s)` : "Try again");
}

/**
 * What a resource has: its answer by `show`, else why there is none. An answer that is old stays below the error of the
 * newest try.
 * @template T
 * @param {object} props
 * @param {Resource<T>} props.of
 * @param {string} [props.notFound] the sentence of a 404: "No run has this id, or you may not read it."
 * @param {(data: T) => Child} props.show
 */
export function Loaded({ of, notFound, show }) {
  return div(
    { class: "stack", "aria-busy": of.isLoading ? "true" : undefined },
    of.error ? h(Failure, { error: of.error, retry: of.reload, notFound }) : null,
    of.data !== undefined ? show(of.data) : of.error ? null : h(Loading, {}),
  );
}
