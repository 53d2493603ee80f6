/**
 * What a page offers in the palette, as long as it stands: `useActs([{ title: "Cancel this run", about: "Act", run }])`. One with a
 * single letter as `keys` is done by that key, too, and stands in the list of keys.
 */

import { acts } from "../overlay-state.js";
import { useEffect } from "../ui.js";

/** @param {import("./palette.js").Entry[]} entries */
export function useActs(entries) {
  const key = entries.map((entry) => entry.title).join("\n");
  useEffect(() => {
    acts.value = entries;
    return () => {
      acts.value = [];
    };
  }, [key]);
}
