/** What a page offers in the palette, as long as it stands: `useActs([{ title: "Cancel this run", about: "Act", run }])`. */

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
