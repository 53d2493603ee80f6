/**
 * The modal dialog of the platform: focus stays in it, Escape closes it, and focus goes back to where it was. It has a live
 * region of its own, since readers hear nothing of what lies below.
 *
 * `confirm` asks before an act that cannot be undone: it names the act and the thing and says what ends. No button is the
 * default one, and the act's button is enabled 600 ms after the opening, so that a double click does nothing.
 */

import { h, tags, useAfter, useEffect, useId, useLayoutEffect, useRef, useState } from "../ui.js";
import { asked } from "../overlay-state.js";
import { useAct } from "../resource.js";
import { Field } from "./field.js";
import { Failure } from "./states.js";
import { Status, repeat } from "./status.js";

/** @import { AgentRuntimeError } from "agent-runtime" */
/** @import { Child } from "../ui.js" */

const { button, dialog, div, footer, form, h2, p } = tags;

/**
 * @param {object} props
 * @param {string} props.title
 * @param {() => void} props.onClose
 * @param {boolean} [props.isLarge]
 * @param {boolean} [props.isLocked] Escape does not close it: something is under way
 * @param {string} [props.class]
 * @param {boolean} [props.hideTitle]
 * @param {Child} [props.children]
 */
export function Dialog({ title, onClose, isLarge = false, isLocked = false, class: name = "", hideTitle = false, children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  // Before the next key can come: Escape closes what is open.
  useLayoutEffect(() => {
    const on = /** @type {HTMLDialogElement} */ (ref.current);
    on.showModal();
    return () => on.close();
  }, []);
  useEffect(() => repeat, []);
  return dialog(
    {
      ref,
      class: `${isLarge ? "large" : ""} ${name}`,
      "aria-labelledby": id,
      onCancel: (event) => {
        event.preventDefault();
        if (!isLocked) onClose();
      },
    },
    div({ class: "dialog-body" }, h2({ id, class: hideTitle ? "hidden" : "" }, title), children),
    h(Status, {}),
  );
}

/**
 * A dialog with a form: what is entered is sent by one button, and an error keeps it. What the server says about one of
 * the `fields` stands under it, and focus goes there.
 * @param {object} props
 * @param {string} props.title
 * @param {string} props.act the button's words: "Add member"
 * @param {() => Promise<unknown>} props.onSubmit throws what the server answers
 * @param {() => void} props.onClose also called after it went well
 * @param {boolean} [props.isLarge]
 * @param {boolean} [props.isDanger]
 * @param {boolean} [props.isReady] false: something is missing, and the button waits
 * @param {(error: AgentRuntimeError | undefined) => Child} [props.fields] the fields that say an error of their own:
 *   `(error) => h(Field, { error: faultAt(error, "email"), … })`
 * @param {Child} [props.children] the fields
 */
export function FormDialog({ title, act: words, onSubmit, onClose, isLarge, isDanger = false, isReady = true, fields, children }) {
  const act = useAct(onSubmit);
  const ref = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [isSaid, setSaid] = useState(false);
  useLayoutEffect(() => {
    const field = act.error && /** @type {HTMLElement | null | undefined} */ (ref.current?.querySelector('[aria-invalid="true"]'));
    setSaid(Boolean(field));
    field?.focus();
  }, [act.error]);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (isReady && (await act.run())) onClose();
  };
  return h(
    Dialog,
    { title, onClose, isLarge, isLocked: act.isBusy },
    form(
      { ref, class: "stack", onSubmit: submit, noValidate: true },
      fields?.(act.error),
      children,
      isSaid ? null : h(Failure, { error: act.error }),
      footer(
        null,
        button({ type: "button", onClick: onClose, disabled: act.isBusy }, "Cancel"),
        button({ class: isDanger ? "primary danger" : "primary", "aria-disabled": !isReady || act.isBusy ? "true" : undefined }, act.isBusy ? `${words} …` : words),
      ),
    ),
  );
}

/**
 * @typedef {object} Question
 * @property {string} title names the act and the thing: "Unregister https://…?"
 * @property {Child} says what ends
 * @property {string} act the button's words: "Unregister"
 * @property {string} [typed] what has to be typed, where nothing can bring it back
 * @property {() => Promise<unknown>} run
 */

/** Asks, and does it. The shell shows the question. @param {Question} question */
export function confirm(question) {
  asked.value = question;
}

export function Confirm() {
  const question = asked.value;
  return question ? h(Asking, { question, key: question.title }) : null;
}

/** @param {{ question: Question }} props */
function Asking({ question }) {
  const [typed, setTyped] = useState("");
  const isOpen = useAfter(600);
  const act = useAct(question.run);
  const close = () => {
    asked.value = null;
  };
  const isReady = isOpen && !act.isBusy && (question.typed === undefined || typed.trim() === question.typed.trim());
  return h(
    Dialog,
    { title: question.title, onClose: close, isLocked: act.isBusy },
    p(null, question.says),
    question.typed === undefined ? null : h(Field, { label: `Type ${question.typed} to go on`, value: typed, onInput: setTyped, autoComplete: "off" }),
    h(Failure, { error: act.error }),
    footer(
      null,
      button({ type: "button", onClick: close, disabled: act.isBusy, autofocus: true }, "Keep it as it is"),
      button(
        {
          type: "button",
          class: "primary danger",
          "aria-disabled": isReady ? undefined : "true",
          onClick: async () => {
            if (isReady && (await act.run())) close();
          },
        },
        act.isBusy ? `${question.act} …` : question.act,
      ),
    ),
  );
}
