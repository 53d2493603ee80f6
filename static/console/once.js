/** What is sent once, however often somebody presses the button: after an answer that was lost, too. */

import { randomKey } from "agent-runtime/transport.js";
import { useRef } from "preact/hooks";

/**
 * Of a form: `const once = useOnce()`, `once(body, (options) => api.runs.create(body, options))`. The same thing has the same
 * idempotency key until it is answered; another thing has another one.
 */
export function useOnce() {
  const kept = useRef({ what: "", idempotencyKey: "" });
  /**
   * @template T
   * @param {unknown} what is sent
   * @param {(options: { idempotencyKey: string }) => Promise<T>} call
   */
  return async (what, call) => {
    const said = JSON.stringify(what);
    if (kept.current.what !== said) kept.current = { what: said, idempotencyKey: randomKey() };
    const { idempotencyKey } = kept.current;
    const answer = await call({ idempotencyKey });
    kept.current.what = "";
    return answer;
  };
}
