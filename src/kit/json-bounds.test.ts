import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  excessOf,
  findingIn,
  isTooDeep,
  MAX_CONTAINERS,
  MAX_DEPTH,
  MAX_MEMBERS,
  MAX_NAMES,
  MAX_VALUES,
} from './json.ts'

const excess = (text: string) => excessOf(Buffer.from(text))
const list = (piece: string, count: number) => `[${`${piece},`.repeat(count - 1)}${piece}]`
const object = (count: number, first = 0) =>
  `{${Array.from({ length: count }, (_, at) => `"k${first + at}":0`).join(',')}}`
const tower = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

describe('excessOf', () => {
  test('allows a depth of 256 and no more, for arrays, objects and both', () => {
    expect([excess(tower(MAX_DEPTH)), excess(tower(MAX_DEPTH + 1))]).toEqual([undefined, 'depth'])
    const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    expect([excess(objects(MAX_DEPTH)), excess(objects(MAX_DEPTH + 1))]).toEqual([undefined, 'depth'])
    const both = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`
    expect([excess(both(MAX_DEPTH)), excess(both(MAX_DEPTH + 2))]).toEqual([undefined, 'depth'])
  })

  test('counts depth, not brackets', () => {
    expect(excess(list(tower(MAX_DEPTH - 1), 50))).toBeUndefined()
    expect(excess(list(tower(MAX_DEPTH), 2))).toBe('depth')
  })

  for (const piece of ['[]', '{}']) {
    test(`allows ${MAX_CONTAINERS} objects and arrays and no more: ${piece}`, () => {
      expect(excess(list(piece, MAX_CONTAINERS - 1))).toBeUndefined()
      expect(excess(list(piece, MAX_CONTAINERS))).toBe('containers')
    })
  }

  for (const piece of ['1', '""', '-1.5e9', 'null', '"a,b:c{["']) {
    test(`allows ${MAX_VALUES} values and no more: ${piece}`, () => {
      expect(excess(list(piece, MAX_VALUES))).toBeUndefined()
      expect(excess(list(piece, MAX_VALUES + 1))).toBe('values')
    })
  }

  test(`allows ${MAX_MEMBERS} members of one object and no more`, () => {
    expect(excess(object(MAX_MEMBERS))).toBeUndefined()
    expect(excess(object(MAX_MEMBERS + 1))).toBe('members')
    expect(excess(`[${object(MAX_MEMBERS)},${object(MAX_MEMBERS)}]`)).toBeUndefined()
    // An inner object does not start the count of the outer one anew.
    expect(excess(object(MAX_MEMBERS).replace(':0', ':{"a":{"b":1}}'))).toBeUndefined()
    expect(excess(object(MAX_MEMBERS + 1).replace(':0', ':{"a":{"b":1}}'))).toBe('members')
  })

  test(`allows ${MAX_NAMES} names in total and no more`, () => {
    const objects = MAX_NAMES / MAX_MEMBERS
    expect(excess(list(object(MAX_MEMBERS), objects))).toBeUndefined()
    expect(excess(`[${list(object(MAX_MEMBERS), objects)},{"a":0}]`)).toBe('names')
  })

  test('ignores the content of strings, however long, escaped or encoded', () => {
    const hostile = '[{,:'.repeat(MAX_VALUES / 4)
    for (const before of ['', 'é', '😀', '\\\\', '\\"', '\\u0022', 'x'.repeat(63), 'x'.repeat(64), 'x'.repeat(65)]) {
      expect(excess(`["${before}${hostile}${before}"]`)).toBeUndefined()
      expect(excess(`["${before}",${tower(MAX_DEPTH)}]`)).toBe('depth')
    }
  })

  test('finds the end of a string after any number of backslashes', () => {
    for (let length = 0; length < 140; length++) {
      for (const slashes of [0, 2, 4, 64, 66]) {
        const text = `["${'x'.repeat(length)}${'\\'.repeat(slashes)}",${tower(MAX_DEPTH)}]`
        expect(excess(text)).toBe('depth')
        const inside = `["${'x'.repeat(length)}${'\\'.repeat(slashes + 1)}"${'['.repeat(MAX_DEPTH)}"]`
        expect(excess(inside)).toBeUndefined()
      }
    }
  })

  test('scans text that is not JSON to its end or to the first limit', () => {
    expect(excess('"'.repeat(1001))).toBeUndefined()
    expect(excess(`"${'\\'.repeat(1001)}`)).toBeUndefined()
    expect(excess(`${']'.repeat(600)}${':'.repeat(600)}`)).toBeUndefined()
    expect(excess('['.repeat(1_000_000))).toBe('depth')
    expect(excess('')).toBeUndefined()
  })

  test('agrees with the parsed value on any JSON', () => {
    const most = { containers: 6, names: 6, values: 12, members: 3 }
    const text = fc.json({ maxDepth: 5 }).map((json) => (json.startsWith('"') ? `[${json}]` : json))
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          fc.array(fc.jsonValue(), { maxLength: 9 }).map((value) => JSON.stringify(value)),
        ),
        (json) => {
          const count = countsOf(JSON.parse(json))
          const isWithin = count.containers <= 6 && count.names <= 6 && count.values <= 12 && count.members <= 3
          expect(excessOf(Buffer.from(json), most) === undefined).toBe(isWithin)
        },
      ),
      { numRuns: 2000 },
    )
  })
})

/** Values as the scan counts them: one, and one more for each comma. An empty list is one value. */
function countsOf(root: unknown) {
  const count = { containers: 0, names: 0, values: 1, members: 0 }
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    count.containers++
    const inner = Object.values(value)
    if (!Array.isArray(value)) {
      count.names += inner.length
      count.members = Math.max(count.members, inner.length)
    }
    count.values += Math.max(0, inner.length - 1)
    inner.forEach(walk)
  }
  walk(root)
  return count
}

describe('findingIn', () => {
  const finding = (text: string) => findingIn(Buffer.from(text))

  test('finds a number of 16 characters or with an exponent', () => {
    expect(finding('{"a":[1,123456789012345,-0.5]}')).toBeUndefined()
    for (const large of ['1234567890123456', '-9007199254740993', '1e20', '1.5E3'])
      for (const text of [`{"a":${large}}`, `[1, ${large} ]`, large]) expect(finding(text)).toBe('large number')
  })

  test('ignores digits in strings, and names of the same letters', () => {
    expect(finding('{"1e20":"9007199254740993 1e20","b":true,"c":false}')).toBeUndefined()
  })

  test('reports a limit before a number', () => {
    expect(finding(`[1e20,${tower(MAX_DEPTH + 1)}]`)).toBe('depth')
  })
})

describe('isTooDeep', () => {
  test('is true above 256 levels, whatever else the text contains', () => {
    expect(isTooDeep(tower(MAX_DEPTH))).toBe(false)
    expect(isTooDeep(tower(MAX_DEPTH + 1))).toBe(true)
    expect(isTooDeep(`["ü😀[[",${tower(MAX_DEPTH)}]`)).toBe(true)
    expect(isTooDeep(list('{}', MAX_CONTAINERS + 1))).toBe(false)
    expect(isTooDeep(JSON.stringify('['.repeat(1000)))).toBe(false)
  })
})
