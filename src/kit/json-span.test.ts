import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { closingQuote, spanOf, withMember, withoutMember, withValueAt, withValues } from './json-span.ts'

describe('a member of a JSON text', () => {
  test('is replaced at any position, and nothing else changes', () => {
    const text = '{ "a" : [1.0, {"model": "in"}], "b\\"":"}", "model" : "x\\"y" , "c": 1e5 }'
    expect(withValueAt(text, ['model'], '"new"')).toBe(text.replace('"x\\"y"', '"new"'))
    expect(withValueAt('{"m":{"model":null,"n":[]},"model":1}', ['m', 'model'], '2')).toBe(
      '{"m":{"model":2,"n":[]},"model":1}',
    )
  })

  test('is the last one of its name, as in JSON.parse', () => {
    expect(withValueAt('{"a":1,"a":2}', ['a'], '3')).toBe('{"a":1,"a":3}')
    expect(withValueAt('{"\\u0061":1}', ['a'], '3')).toBe('{"\\u0061":3}')
  })

  test('leaves the text unchanged when it is missing', () => {
    for (const text of ['{}', '[]', '1', '""', '{"b":{"a":1}}', '']) {
      expect(withValueAt(text, ['a'], '3')).toBe(text)
      expect(withoutMember(text, 'a')).toBe(text)
      expect(spanOf(text, ['a', 'b'])).toBeUndefined()
    }
  })

  test('is found in any object and can be removed', () => {
    const value = fc.jsonValue()
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), value, { maxKeys: 5 }),
        fc.nat(5),
        value,
        fc.nat(4),
        (others, at, one, space) => {
          const entries = Object.entries(others).filter(([name]) => name !== 'wanted' && name !== '__proto__')
          const all = entries.toSpliced(at, 0, ['wanted', one])
          const text = JSON.stringify(Object.fromEntries(all), null, space)
          const span = spanOf(text, ['wanted'])
          expect(JSON.parse(text.slice(span?.start, span?.end))).toEqual(JSON.parse(JSON.stringify(one)))
          const replaced = JSON.parse(withValueAt(text, ['wanted'], '"new"'))
          expect(replaced).toEqual(JSON.parse(JSON.stringify({ ...Object.fromEntries(all), wanted: 'new' })))
          expect(JSON.parse(withoutMember(text, 'wanted'))).toEqual(
            JSON.parse(JSON.stringify(Object.fromEntries(entries))),
          )
        },
      ),
    )
  })

  test('is replaced with others, whatever their order, and where they are missing', () => {
    const text = '{"b":{"a":1}, "c" : "x", "a":2, "b":[]}'
    expect(withValues(text, { a: '"A"', b: '3', missing: '4', c: 'null' })).toBe(
      '{"b":{"a":1}, "c" : null, "a":"A", "b":3}',
    )
    expect(withValues(text, {})).toBe(text)
  })

  test('is added at the end', () => {
    expect(withMember('{"a":{}} ', 'usage', 'null')).toBe('{"a":{},"usage":null} ')
  })
})

test('ignores escaped quotes when it searches the end of a string', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 100 }), (text) => {
      const json = JSON.stringify(text)
      expect(closingQuote(`${json}, "more"`, 1)).toBe(json.length - 1)
    }),
  )
  for (const length of [31, 32, 33]) {
    expect(closingQuote(`"${'x'.repeat(length)}" and "`, 1)).toBe(length + 1)
    expect(closingQuote(`"${'x'.repeat(length)}\\" and "`, 1)).toBe(length + 8)
  }
  expect(closingQuote('"never', 1)).toBe(-1)
})
