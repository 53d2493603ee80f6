/**
 * Which version is live, and undoing the last change of it: for whatever has versions.
 *
 * Guarantees: a promotion asks nothing, since one press brings back what was live before. What was live is remembered for as
 * long as the page stays loaded.
 */

import { h, signal, tags } from "../ui.js";
import { useAct } from "../resource.js";
import { Banner } from "./banner.js";
import { Failure } from "./states.js";
import { announce } from "./status.js";

const { button, div } = tags;

/** What was live before, by the object's id. @type {import("@preact/signals").Signal<Record<string, { before: string | null, now: string | null }>>} */
const changed = signal({});

/** @typedef {{ id: string, liveVersion?: string | null, archivedAt?: string | null }} Versioned */

/**
 * @template {Versioned} T
 * @param {T} of
 * @param {(version: string | null) => Promise<T>} promote
 * @param {(now: T) => void} onDone
 */
export function usePromotion(of, promote, onDone) {
  const act = useAct(async (/** @type {string | null} */ version, /** @type {boolean} */ isUndo) => {
    const before = of.liveVersion ?? null;
    const now = await promote(version);
    const { [of.id]: last, ...others } = changed.value;
    changed.value = isUndo ? others : { ...others, [of.id]: { before, now: version } };
    announce(version ? `${version} is live` : "No version is live");
    onDone(now);
  });
  return { act, last: changed.value[of.id] };
}

/** Says what has just become live, and takes it back. @param {{ of: Versioned, promotion: ReturnType<typeof usePromotion> }} props */
export function Promoted({ of, promotion }) {
  const { act, last } = promotion;
  const stands = last && (of.liveVersion ?? null) === last.now;
  return div(
    { class: "promoted" },
    h(Failure, { error: act.error }),
    stands
      ? h(
          Banner,
          { tone: "good", title: last.now ? `${last.now} is live` : "No version is live", actions: button({ type: "button", disabled: act.isBusy, onClick: () => act.run(last.before, true) }, last.before ? `Undo: ${last.before} live again` : "Undo: none live") },
          last.now ? "What begins from now on runs it. What is under way ends with the version that it began with." : "What begins from now on runs the newest version.",
        )
      : null,
  );
}
