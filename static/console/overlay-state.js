/** What lies over the page, or is asked for. The overlays themselves are loaded after the first view (`overlays.js`). */

import { signal } from "@preact/signals";

/** The palette is open. */
export const isPaletteOpen = signal(false);
/** The list of keys is shown. */
export const isHelpOpen = signal(false);
/** What `confirm` asks. @type {import("@preact/signals").Signal<import("./components/dialog.js").Question | null>} */
export const asked = signal(null);
/** The acts of the page in sight, for the palette. @type {import("@preact/signals").Signal<import("./components/palette.js").Entry[]>} */
export const acts = signal([]);
