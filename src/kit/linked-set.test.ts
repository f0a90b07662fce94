import { describe, expect, test } from 'bun:test'
import { LinkedItem, LinkedSet } from './linked-set.ts'

class Item extends LinkedItem<Item> {
  readonly name: number
  constructor(name: number) {
    super()
    this.name = name
  }
}

const namesIn = (set: LinkedSet<Item>) => [...set].map(({ name }) => name)

describe('a linked set', () => {
  test('has what a Set has, after any additions and deletions', () => {
    const [linked, plain] = [new LinkedSet<Item>(), new Set<Item>()]
    const items = Array.from({ length: 12 }, (_, name) => new Item(name))
    let seed = 1
    for (let step = 0; step < 5_000; step++) {
      seed = (seed * 48_271) % 2_147_483_647
      const item = items[seed % items.length] as Item
      if (plain.has(item)) {
        plain.delete(item)
        linked.delete(item)
      } else if (seed % 3 > 0) {
        plain.add(item)
        linked.add(item)
      } else linked.delete(item)
      expect(namesIn(linked)).toEqual([...plain].map(({ name }) => name))
      expect([linked.size, linked.first]).toEqual([plain.size, [...plain][0]])
    }
  })

  test('links a deleted item to no other', () => {
    const set = new LinkedSet<Item>()
    const items = [1, 2, 3].map((name) => new Item(name))
    for (const item of items) set.add(item)
    for (const item of items) set.delete(item)
    expect(items.map(({ set, earlier, later }) => [set, earlier, later])).toEqual(
      items.map(() => [undefined, undefined, undefined]),
    )
  })

  test('leaves an item of another set where it is', () => {
    const [one, other] = [new LinkedSet<Item>(), new LinkedSet<Item>()]
    const item = new Item(1)
    one.add(item)
    other.delete(item)
    expect([one.size, other.size, namesIn(one)]).toEqual([1, 0, [1]])
  })

  test('skips what is deleted, and what is added, while it is read', () => {
    const set = new LinkedSet<Item>()
    const [first, second, third] = [1, 2, 3].map((name) => new Item(name)) as [Item, Item, Item]
    for (const item of [first, second, third]) set.add(item)
    const seen: number[] = []
    for (const { name } of set) {
      seen.push(name)
      set.delete(second)
      if (name === 1) set.add(new Item(4))
    }
    expect(seen).toEqual([1, 3])
    expect(namesIn(set)).toEqual([1, 3, 4])
  })
})
