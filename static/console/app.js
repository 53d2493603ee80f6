/** The start: who is signed in, then the frame and the page. */

import { errorOf } from "./api.js";
import { start, state } from "./session.js";
import { Shell } from "./shell.js";
import { Failure } from "./components/states.js";
import { h, render, tags } from "./ui.js";
import "./keys.js";
import "./theme.js";

const root = /** @type {HTMLElement} */ (document.getElementById("app"));

/** Without an answer there is nothing to show but why. */
async function begin() {
  try {
    await start();
    render(h(Shell, {}), root);
  } catch (error) {
    state.value = "unknown";
    render(tags.main({ class: "alone" }, tags.h1(null, "agent-runtime"), h(Failure, { error: errorOf(error), retry: begin })), root);
  }
}

begin();
