/**
 * Lists: a page with its rows, and all pages one after the other. Nothing is read before it is asked for.
 */

/** @template T @typedef {{ data: T[], hasMore: boolean, nextCursor?: string | null }} PageAnswer */

/**
 * One page of a list. To iterate over it gives its rows and then those of the pages after it.
 * @template T
 */
export class Page {
  #read;

  /**
   * @param {PageAnswer<T>} answer
   * @param {(cursor: string) => Promise<Page<T>>} read
   */
  constructor(answer, read) {
    // What a list says beside its rows, such as the counts of the inbox. Nothing of it takes the place of a method.
    for (const [name, value] of Object.entries(answer)) if (!(name in this)) Object.assign(this, { [name]: value });
    /** The rows of this page. */
    this.data = answer.data;
    /** More rows follow. */
    this.hasMore = answer.hasMore;
    /** Where the next page begins; nothing on the last one. */
    this.nextCursor = answer.nextCursor ?? undefined;
    this.#read = read;
  }

  /**
   * The page after this one; nothing after the last.
   * @returns {Promise<this | undefined>}
   */
  async next() {
    return this.hasMore && this.nextCursor ? /** @type {this} */ (await this.#read(this.nextCursor)) : undefined;
  }

  /** @returns {AsyncGenerator<T, void, undefined>} */
  async *[Symbol.asyncIterator]() {
    for (let page = /** @type {Page<T> | undefined} */ (this); page; page = await page.next()) yield* page.data;
  }
}

/**
 * @template P
 * @typedef {Promise<P> & AsyncIterable<P extends Page<infer T> ? T : never>} Pages the first page, once it is awaited, and
 *   every row of the list, if it is iterated over
 */

/**
 * @param {(cursor?: string) => Promise<any>} read
 * @returns {Pages<any>}
 */
export function pages(read) {
  /** @param {string} [cursor] @returns {Promise<Page<any>>} */
  const page = async (cursor) => new Page(await read(cursor), page);
  /** @type {Promise<Page<any>> | undefined} */
  let asked;
  const first = () => (asked ??= page());
  return {
    then: (...then) => first().then(...then),
    catch: (otherwise) => first().catch(otherwise),
    finally: (last) => first().finally(last),
    [Symbol.toStringTag]: "Page",
    async *[Symbol.asyncIterator]() {
      yield* await first();
    },
  };
}
