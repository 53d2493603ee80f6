/** Answers that are lost on their way: the server has done what was asked, and the page does not hear of it. */

/** How often the client sends a request before it gives up. */
const TRIES = 3;

/**
 * Loses every answer to a press of a button, and then no more.
 * @param {any} page @param {string} path of the POST
 * @returns {Promise<string[]>} the idempotency keys of its requests, as they come
 */
export async function losesAnswers(page, path) {
  /** @type {string[]} */
  const keys = [];
  await page.route(`**${path}`, async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    keys.push(route.request().headers()["idempotency-key"]);
    const answer = await route.fetch();
    return keys.length > TRIES ? route.fulfill({ response: answer }) : route.abort("connectionreset");
  });
  return keys;
}
