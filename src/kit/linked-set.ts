/**
 * Keeps the open items of a process in the order in which they were added, each linked to its neighbours. A `Set` through which
 * items pass by the thousand keeps dead ones alive: the runtime copies its table every few dozen deletions, and a table that an
 * earlier collection has promoted holds the next one, with all that was open when it was copied, until a full collection.
 */
export interface Linked<Item extends Linked<Item>> {
  /** The set that it is in, if any: one at a time. */
  set: LinkedSet<Item> | undefined
  earlier: Item | undefined
  later: Item | undefined
}

/** For a class whose objects are in such sets. */
export abstract class LinkedItem<Item extends Linked<Item>> implements Linked<Item> {
  set: LinkedSet<Item> | undefined
  earlier: Item | undefined
  later: Item | undefined
}

export class LinkedSet<Item extends Linked<Item>> {
  size = 0
  first: Item | undefined
  #last: Item | undefined

  add(item: Item): void {
    item.set?.delete(item)
    item.set = this
    item.earlier = this.#last
    if (this.#last) this.#last.later = item
    else this.first = item
    this.#last = item
    this.size++
  }

  /** No effect on an item of another set, or of none. */
  delete(item: Item): void {
    if (item.set !== this) return
    const { earlier, later } = item
    if (earlier) earlier.later = later
    else this.first = later
    if (later) later.earlier = earlier
    else this.#last = earlier
    // Otherwise an item that a collection has promoted would keep those that came after it.
    item.set = item.earlier = item.later = undefined
    this.size--
  }

  /** Those that are in it now; one that is deleted meanwhile is left out. */
  *[Symbol.iterator](): Generator<Item> {
    const items: Item[] = []
    for (let item = this.first; item; item = item.later) items.push(item)
    for (const item of items) if (item.set === this) yield item
  }
}
