/** Lists of what JSON may hold. */
import { expect, test } from 'bun:test'
import { type AllowList, all, type ObjectShape, outsideOf, plain } from './allow-list.ts'
import { camelCase } from './camel-case.ts'

const tree: ObjectShape = { members: { name: 'value', below: () => tree } }
const shape: ObjectShape = {
  members: {
    ...all('value', 'a', 'list_of'),
    free: 'data',
    inner: plain('b'),
    strict: { members: { b: 'value' }, only_objects: true },
    tools: {
      types: ['plain', 'dated_*'],
      members: { type: 'value' },
      by_type: { plain: { schema: 'data' }, '': { n: 'value' } },
    },
    url: { accepts: (text) => text.startsWith('https:') },
    map: { others: 'value' },
    tree,
  },
}
const outside = (value: unknown, more: Partial<AllowList> = {}) => outsideOf(value, { shape, ...more })

test.each<[string, unknown]>([
  ['plain values and lists of them', { a: 1, list_of: ['x', [true]], inner: 'x' }],
  ['null anywhere', { b: null, inner: { c: null }, strict: null, url: null }],
  ['data of any form', { free: { model: { x: [] } } }],
  ['objects in a list', { inner: [{ b: 1 }, { b: 2 }] }],
  [
    'types with and without a date',
    { tools: [{ type: 'plain', schema: {} }, { type: 'dated_20250101' }, { type: 'dated_2025_01_01' }] },
  ],
  ['members of what has no type', { tools: [{ n: 1 }] }],
  ['a text that is accepted', { url: 'https://x' }],
  ['any name in a map', { map: { x: 1, __proto__: 2 } }],
])('allows %s', (_, value) => {
  expect(outside(value)).toBeUndefined()
})

test.each<[object, string]>([
  [{ b: 1 }, 'b'],
  [{ a: { b: 1 } }, 'a'],
  [{ a: [1, { b: 1 }] }, 'a[1]'],
  [{ inner: [{ b: 1 }, { c: 1 }] }, 'inner[1].c'],
  [{ strict: 'id' }, 'strict'],
  [{ strict: ['id'] }, 'strict[0]'],
  [{ tools: { type: 'dated' } }, 'tools.type'],
  [{ tools: { type: 'dated_2025' } }, 'tools.type'],
  [{ tools: { type: ['plain'] } }, 'tools.type'],
  [{ tools: { type: { toString: 1 } } }, 'tools.type'],
  [{ tools: { type: 'dated_20250101', schema: {} } }, 'tools.schema'],
  [{ tools: { type: 'plain', n: 1 } }, 'tools.n'],
  [{ url: 'gs:x' }, 'url'],
  [{ url: { x: 1 } }, 'url'],
  [{ map: { x: {} } }, 'map.x'],
  [{ constructor: 1 }, 'constructor'],
  [JSON.parse('{"__proto__":{"a":1}}'), '__proto__'],
])('rejects %j at %s', (value, path) => {
  expect(outside(value)?.path).toBe(path)
})

test('an entry of the operator allows a member or a type with all of its content', () => {
  const value = { inner: [{ c: { d: 1 } }], tools: [{ type: 'other', x: {} }] }
  expect(outside(value)).toMatchObject({ entry: 'inner.c', allowed: ['b'] })
  expect(outside(value, { besides: ['inner.c'] })).toMatchObject({ entry: 'tools.other', type: 'other' })
  expect(outside(value, { besides: ['inner.c', 'tools.other'] })).toBeUndefined()
})

test('repeats at most 100 characters of a type', () => {
  expect(outside({ tools: { type: 'x'.repeat(100) } })?.type).toHaveLength(100)
  expect(outside({ tools: { type: 'x'.repeat(101) } })?.type).toHaveLength(100)
})

test('compares names in their canonical spelling', () => {
  const camel = { shape: plain('oneName'), spelling: camelCase }
  expect(outsideOf({ one_name: 1, oneName: 2 }, camel)).toBeUndefined()
  expect(outsideOf({ One_name: 1 }, camel)?.path).toBe('One_name')
})

test('rejects values nested deeper than any request', () => {
  const nested = (levels: number) => {
    let value: object = { name: 'x' }
    for (let level = 0; level < levels; level++) value = { below: value }
    return { tree: value }
  }
  expect(outside(nested(90))).toBeUndefined()
  expect(outside(nested(110))?.path).toContain('tree.below')
})
