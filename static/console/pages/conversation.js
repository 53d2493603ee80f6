/**
 * A conversation: a chat with an agent that streams. `conversations/new` is one that its first message begins.
 *
 * Guarantees: one turn at a time, as the server has it. What was typed stays until the server has taken it.
 */

import { api } from "../api.js";
import { Banner } from "../components/banner.js";
import { confirm } from "../components/dialog.js";
import { Check, Field, Select, useFaulty } from "../components/field.js";
import { Markdown } from "../components/markdown.js";
import { PageHead, Unread } from "../components/page-head.js";
import { NO_OVERRIDES, OverrideFields, areOverridesReady, overridesOf, useTakenVersion } from "../components/run-overrides.js";
import { Empty, Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Time } from "../components/time.js";
import { Chat, Done, Said, Turn } from "../components/turn.js";
import { shortId } from "../components/id.js";
import { may } from "../permit.js";
import { useOnce } from "../once.js";
import { useAct, useResource } from "../resource.js";
import { chosenProject, go, href, query } from "../route.js";
import { isFinished } from "../run-events.js";
import { me } from "../session.js";
import { h, tags, useEffect, useRef, useState } from "../ui.js";

/** @import { Conversation, ConversationMessage, Run, RunOverrides } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { a, button, div, form, p, span } = tags;

const crumbs = () => [{ title: "Conversations", href: href("conversations") }];
const PAGE = 50;

/** What a new conversation's first turn left for its page: the run that is under way. @type {Map<string, string>} */
const begun = new Map();

/** @param {{ conversationId: string }} props */
export default function ConversationPage({ conversationId }) {
  if (conversationId === "new") return h(NewConversation, {});
  return h(Known, { conversationId, key: conversationId });
}

/** @param {{ conversationId: string }} props */
function Known({ conversationId }) {
  const read = useResource(`conversation ${conversationId}`, (options) => api.conversations.get(conversationId, options), { live: ["conversation"] });
  const conversation = read.data;
  if (!conversation) return h(Unread, { title: "Conversation", crumbs: crumbs(), of: read, notFound: "No conversation has this id, or you may not read it." });
  return div(
    null,
    h(Head, { conversation, onChange: read.reload }),
    read.error ? h(Failure, { error: read.error, retry: read.reload }) : null,
    conversation.erasureRequestedAt ? h(Erased, { conversation }) : h(Talk, { conversation, onTurn: read.reload }),
  );
}

/** @param {{ conversation: Conversation }} props */
function Erased({ conversation }) {
  return h(Banner, { tone: "idle", title: conversation.erasedAt ? "It was erased" : "It is being erased" }, p(null, "What was said is gone. Its runs stay with their times and costs. ", h(Time, { at: conversation.erasedAt ?? conversation.erasureRequestedAt })));
}

/** @param {{ conversation: Conversation, onChange: () => void }} props */
function Head({ conversation, onChange }) {
  const agent = useResource(`agent ${conversation.agentId}`, (options) => api.agents.get(conversation.agentId, options));
  const place = { projectId: conversation.projectId };
  const mayErase = may("admin", "conversation", place) || (conversation.createdBy === me.value?.id && may("write", "conversation", place));
  const title = conversation.title || `Conversation ${shortId(conversation.id)}`;
  const erase = () =>
    confirm({
      title: `Erase "${title}"?`,
      says: "Its messages are erased, and what its runs were given, said and answered. Their rows stay, with times and costs. Nothing brings it back.",
      act: "Erase the conversation",
      typed: conversation.title || "erase",
      run: async () => {
        await api.conversations.erase(conversation.id);
        announce("It is being erased");
        onChange();
      },
    });
  return h(PageHead, {
    title,
    crumbs: crumbs(),
    lead: span(null, "With ", a({ href: href(`agents/${conversation.agentId}`) }, agent.data?.name ?? "an agent"), conversation.version ? `, always version ${conversation.version}` : ", the version that is live at each turn", ". Begun ", h(Time, { at: conversation.createdAt }), "."),
    actions: mayErase && !conversation.erasureRequestedAt ? button({ type: "button", class: "danger", onClick: erase }, "Erase") : undefined,
  });
}

/** @param {{ conversation: Conversation, onTurn: () => void }} props */
function Talk({ conversation, onTurn }) {
  const id = conversation.id;
  const [earlier, setEarlier] = useState(/** @type {{ rows: ConversationMessage[], cursor?: string | null } | undefined} */ (undefined));
  const [sent, setSent] = useState(/** @type {{ message?: string, runId: string } | undefined} */ (begun.has(id) ? { runId: /** @type {string} */ (begun.get(id)) } : undefined));
  const more = useAct(async (/** @type {string} */ cursor) => {
    const page = await api.conversations.messages.list(id, { order: "desc", limit: PAGE, cursor });
    setEarlier({ rows: [...(earlier?.rows ?? []), ...page.data], cursor: page.nextCursor ?? null });
  });
  begun.delete(id);
  const active = conversation.activeRunId ?? undefined;
  const current = sent?.runId ?? active;
  const [followed, setFollowed] = useState(/** @type {{ runId: string, status: string } | undefined} */ (undefined));
  const status = followed && followed.runId === current ? followed.status : undefined;
  const isOver = status !== undefined && isFinished({ status });
  const isUnderWay = Boolean(current) && !isOver;
  // A turn of somebody else may be over before it is seen to be under way.
  const newest = useResource(`messages ${id}`, async (options) => ({ ...(await api.conversations.messages.list(id, { order: "desc", limit: PAGE }, options)) }), { live: isUnderWay ? [] : ["conversation"] });
  const messages = [...(newest.data?.data ?? []), ...(earlier?.rows ?? [])].sort((one, other) => one.position - other.position).filter((one, index, all) => one.position !== all[index - 1]?.position);
  const bottom = useFollowed([messages.length, current, status]);
  const cursor = earlier ? earlier.cursor : newest.data?.nextCursor;
  const mayWrite = may("write", "conversation", { projectId: conversation.projectId });
  // A turn that somebody else began, after one's own if there was one.
  const others = active && active !== sent?.runId && (!sent || isOver) ? active : undefined;
  const isPast = isOver && sent?.runId === current && messages.some((one) => one.runId === current) && messages.at(-1)?.runId !== current;
  useEffect(() => {
    if (others || isPast) setSent(undefined);
    if (others && !newest.isLoading && !messages.some((one) => one.runId === others)) newest.reload();
  }, [others, isPast]);
  const once = useOnce();
  const onChange = (/** @type {Run} */ run) => {
    setFollowed({ runId: run.id, status: run.status });
    if (isFinished(run)) {
      newest.reload();
      onTurn();
    }
  };
  const send = async (/** @type {Sent} */ sent) => {
    const { message } = sent;
    const body = { agentId: conversation.agentId, conversationId: id, ...sent };
    const { run } = await once(body, (options) => api.runs.create(body, options));
    setSent({ message, runId: run.id });
    newest.reload();
  };
  const again = useAct(async (/** @type {string} */ failed) => {
    const { run } = await once(failed, (options) => api.runs.retry(failed, {}, options));
    setSent({ runId: run.id });
    newest.reload();
  });
  // The server takes up a failed turn while nothing was said after it.
  const newestRun = messages.at(-1)?.runId ?? current;
  const acts = (/** @type {Run} */ run) =>
    mayWrite && run.status === "failed" && run.id === newestRun && !isUnderWay
      ? div({ class: "row" }, button({ type: "button", disabled: again.isBusy, onClick: () => again.run(run.id) }, "Try again"), h(Failure, { error: again.error }))
      : null;
  if (!newest.data) return newest.error ? h(Failure, { error: newest.error, retry: newest.reload }) : h(Loading, {});
  return div(
    { class: "talk" },
    newest.error ? h(Failure, { error: newest.error, retry: newest.reload }) : null,
    cursor ? div({ class: "row" }, button({ type: "button", disabled: more.isBusy, onClick: () => more.run(cursor) }, "Earlier messages")) : null,
    h(Failure, { error: more.error }),
    messages.length || current ? h(Chat, {}, exchanges(messages, current, sent?.message, onChange, acts)) : h(Empty, { title: "Nothing was said yet." }, mayWrite ? "Write the first message below." : undefined),
    div({ ref: bottom }),
    mayWrite ? h(Composer, { send, agentId: conversation.agentId, version: conversation.version ?? undefined, runId: isUnderWay ? current : undefined }) : p({ class: "faint" }, "You may read this conversation, and not write in it."),
  );
}

/**
 * Messages in order. A turn that is followed, and one that has no answer, are shown by their run.
 * @param {ConversationMessage[]} messages @param {string | undefined} current @param {string | undefined} sent
 * @param {(run: Run) => void} onChange @param {(run: Run) => Child} acts
 */
function exchanges(messages, current, sent, onChange, acts) {
  const answered = new Set(messages.filter((one) => one.role === "assistant").map((one) => one.runId));
  /** @type {Child[]} */
  const shown = [];
  for (const [index, message] of messages.entries()) {
    const isLive = message.runId === current;
    if (message.role === "user") {
      shown.push(h(Said, { key: message.position, role: "user", about: h(Time, { at: message.createdAt, short: true, ago: false }) }, p({ class: "as-written" }, message.content)));
      if (!isLive && !answered.has(message.runId) && messages[index + 1]?.runId !== message.runId) shown.push(h(Turn, { key: message.runId, runId: message.runId, isStreamed: false, acts }));
    } else if (!isLive) shown.push(h(Said, { key: message.position, role: message.role, about: h(Time, { at: message.createdAt, short: true, ago: false }) }, h(Markdown, { text: message.content }), h(Done, { runId: message.runId })));
  }
  if (current) {
    if (sent && !messages.some((one) => one.runId === current)) shown.push(h(Said, { key: "sent", role: "user" }, p({ class: "as-written" }, sent)));
    shown.push(h(Turn, { key: current, runId: current, isStreamed: true, onChange, acts }));
  }
  return shown;
}

/** Keeps the end in sight, for who is there. @param {unknown[]} after */
function useFollowed(after) {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const root = document.documentElement;
    if (root.scrollHeight - root.scrollTop - root.clientHeight < 600) root.scrollTop = root.scrollHeight;
  }, after);
  return ref;
}

/** What a turn is begun with. @typedef {{ message: string, dryRun: boolean, overrides?: RunOverrides }} Sent */

/**
 * @param {{ send: (sent: Sent) => Promise<void>, agentId: string, version?: string, runId?: string, hasFocus?: boolean }} props
 *   `version`: the one of each turn, if it is always the same; `runId`: the turn that is under way
 */
function Composer({ send, agentId, version, runId, hasFocus = false }) {
  const [message, setMessage] = useState("");
  const [dryRun, setDryRun] = useState(false);
  const taken = useTakenVersion(agentId, version);
  // `turn` counts those that were sent, each of which begins the fields anew. Another version may let a run set something else.
  const of = `${agentId} ${taken?.version ?? ""}`;
  const [kept, setKept] = useState({ of, turn: 0, typed: NO_OVERRIDES });
  const typed = kept.of === of ? kept.typed : NO_OVERRIDES;
  const act = useAct(async () => {
    await send({ message, dryRun, overrides: overridesOf(typed) });
    setMessage("");
    setKept((old) => ({ of, turn: old.turn + 1, typed: NO_OVERRIDES }));
  });
  const ref = useFaulty(act.error);
  const stop = useAct(async (/** @type {string} */ run) => {
    await api.runs.cancel(run);
    announce("The agent was asked to stop");
  });
  const isReady = Boolean(message.trim()) && areOverridesReady(typed) && !runId && !act.isBusy;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (isReady) act.run();
  };
  return form(
    { ref, class: "composer", noValidate: true, onSubmit: submit, onKeyDown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event) },
    h(Field, { label: "Message", isHidden: true, placeholder: "Write to the agent", value: message, onInput: setMessage, lines: 3, autofocus: hasFocus }),
    taken ? h(OverrideFields, { key: `${of} ${kept.turn}`, version: taken, typed, onInput: (typed) => setKept((old) => ({ ...old, of, typed })), error: act.error }) : null,
    h(Failure, { error: act.error ?? stop.error }),
    div(
      { class: "row spread" },
      h(Check, { label: "Dry run: nothing is changed", value: dryRun, onInput: setDryRun }),
      div(
        { class: "row" },
        span({ class: "faint wide" }, "Ctrl Enter sends"),
        runId ? button({ type: "button", class: "danger", disabled: stop.isBusy, onClick: () => stop.run(runId) }, "Stop") : null,
        button({ class: "primary", "aria-disabled": isReady ? undefined : "true" }, act.isBusy ? "Send …" : "Send"),
      ),
    ),
  );
}

/** Chooses an agent; the first message begins it. */
function NewConversation() {
  const project = chosenProject.value;
  const [agentId, setAgent] = useState(query.value.agent ?? "");
  const [version, setVersion] = useState(query.value.version ?? "");
  const [title, setTitle] = useState("");
  const agents = useResource(`agents to talk to ${project ?? ""}`, async (options) => (await api.agents.list({ projectId: project || undefined, limit: 200 }, options)).data.filter((one) => one.latestVersion && may("write", "agent", { projectId: one.projectId })));
  const agent = agents.data?.find((one) => one.id === agentId);
  const versions = useResource(agentId ? `versions to talk to ${agentId}` : null, async (options) => (await api.agents.versions.list(agentId, { order: "desc", limit: 200 }, options)).data);
  const once = useOnce();
  /** The conversation of a message that was not taken: it is the next one's. */
  const made = useRef({ of: "", id: "" });
  const send = async (/** @type {Sent} */ sent) => {
    const { message } = sent;
    const of = JSON.stringify([agentId, version, title]);
    if (made.current.of !== of) made.current = { of, id: (await api.conversations.create({ agentId, version: version || undefined, title: title.trim() || message.trim().split("\n")[0]?.slice(0, 80) })).id };
    const { id } = made.current;
    const body = { agentId, conversationId: id, ...sent };
    const { run } = await once(body, (options) => api.runs.create(body, options));
    begun.set(id, run.id);
    go(href(`conversations/${id}`), { replace: true });
  };
  return div(
    null,
    h(PageHead, { title: "New conversation", crumbs: crumbs() }),
    agents.error ? h(Failure, { error: agents.error, retry: agents.reload }) : null,
    agents.data && !agents.data.length
      ? h(Empty, { title: "There is no agent to talk to.", action: a({ class: "button", href: href("agents") }, "To the agents") }, "An agent needs a version, and you the right to run it.")
      : div(
          { class: "talk" },
          div(
            { class: "fields-row" },
            h(Select, { label: "Agent", value: agentId, placeholder: "Choose an agent", onInput: (value) => (setAgent(value), setVersion("")), options: (agents.data ?? []).map((one) => ({ value: one.id, label: one.name })) }),
            h(Select, { label: "Version", value: version, onInput: setVersion, placeholder: agent?.liveVersion ? `The live one, now ${agent.liveVersion}` : "The newest one", options: (versions.data ?? []).map((one) => ({ value: one.version, label: `Always ${one.version}` })) }),
            h(Field, { label: "Title", isRequired: false, value: title, onInput: setTitle, most: 200, placeholder: "As the first message begins" }),
          ),
          agentId ? h(Composer, { send, agentId, version: version || undefined, hasFocus: true }) : p({ class: "faint" }, "Choose an agent to talk to."),
        ),
  );
}
