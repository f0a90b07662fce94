/** Events that are parsed by what was learned of an earlier one equal those of a JSON parser. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { JsonRecord } from '../../kit/json.ts'
import { PlainEvents } from './plain-events.ts'

const eventWith = (content: string, more = '') =>
  `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":${content}},"logprobs":null,"finish_reason":null}]${more}}`

function learned(data: string): PlainEvents {
  const events = new PlainEvents()
  events.learn(data, JSON.parse(data))
  return events
}

test.each(['" word"', '"Gruß \u2028 😀"', '""', '"content"', '"a, b: {c}"', '"a\\nb \\u00e4"', '"a\\"}}],\\"b"'])(
  'parses an event with the text %s',
  (content) => {
    const data = eventWith(content)
    expect(JSON.stringify(learned(eventWith('"first"')).parse(data))).toBe(JSON.stringify(JSON.parse(data)))
  },
)

test('gives each event objects of its own', () => {
  const events = learned(eventWith('"first"'))
  const one = events.parse(eventWith('"one"')) as { choices: { delta: JsonRecord }[] }
  ;(one.choices[0]?.delta as JsonRecord).content = 'changed'
  expect(events.parse(eventWith('"two"'))).toEqual(JSON.parse(eventWith('"two"')))
})

test('leaves an event to the parser that differs in more than its text', () => {
  const events = learned(eventWith('"first"'))
  for (const other of [
    eventWith('"a","content":"b"'),
    eventWith('null'),
    eventWith('"a"', ',"usage":{"prompt_tokens":1}'),
    eventWith('"a"').replace('"created":1', '"created":2'),
    eventWith('"a\tb"'),
    '{"error":{}}',
  ]) {
    expect(events.parse(other)).toBeUndefined()
  }
})

test.each([
  ['with an object beside the choices', eventWith('"a"', ',"usage":{"prompt_tokens":1}')],
  ['without text', eventWith('""')],
  ['of two choices', eventWith('"a"').replace('"choices":[', '"choices":[{"index":1,"delta":{}},')],
  ['that names its text twice', eventWith('"a"').replace('"index"', '"content":"a","index"')],
])('learns nothing of an event %s', (_, data) => {
  expect(learned(data).parse(data)).toBeUndefined()
})

test('stops learning where no event is like the one before', () => {
  const events = new PlainEvents()
  for (let id = 0; id < 40; id++) {
    const data = eventWith('"a"').replace('"c1"', `"c${id}"`)
    expect(events.parse(data)).toBeUndefined()
    events.learn(data, JSON.parse(data))
  }
  const next = eventWith('"b"').replace('"c1"', '"c39"')
  expect(events.parse(next)).toBeUndefined()
})

/** What a hostile or odd provider may write around or in place of a text. */
const PIECES = [
  'a',
  ' ',
  '"',
  '\\\\',
  '\\',
  '\\"',
  '\\u00e4',
  '\\ud83d',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"content":',
  '"delta":{',
  '\n',
  '\u2028',
  '\u007f',
  'é',
  '😀',
]
const odd = fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((pieces) => pieces.join(''))
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((value) => JSON.stringify(value)),
  odd.map((value) => `"${value}"`),
)
const more = fc.constantFrom(
  '',
  '',
  '',
  '',
  '',
  '',
  '',
  ',"x":null',
  ',"content":"b"',
  ',"choices":[]',
  ',"n":1e400',
  ',"n":9007199254740993',
  ' ',
)
const event = fc.tuple(text, more, fc.boolean()).map(([content, rest, hasSpaces]) => {
  const data = eventWith(content, rest)
  return hasSpaces ? data.replaceAll(':', ': ') : data
})
const parsed = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch {
    return 'no JSON'
  }
}

test('never says anything else than a JSON parser, whatever follows what', () => {
  let known = 0
  const property = fc.property(fc.array(event, { minLength: 2, maxLength: 8 }), (stream) => {
    const events = new PlainEvents()
    for (const data of stream) {
      const value = parsed(data)
      const plain = events.parse(data)
      if (plain) {
        known++
        expect<unknown>(plain).toEqual(value)
      } else if (value !== 'no JSON') events.learn(data, value as JsonRecord)
    }
  })
  fc.assert(property, { numRuns: 20_000, seed: 20_261_124 })
  expect(known).toBeGreaterThan(5_000)
})
