/** A signing secret made here: `whsec_` and the base64 of 32 bytes of the browser's random source. */

export function newSigningSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
