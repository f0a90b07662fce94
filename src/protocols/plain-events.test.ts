/** Events that are parsed by what was learned of an earlier one equal those of a JSON parser. */
import { expect, test } from 'bun:test'
import type { JsonRecord } from '../kit/json.ts'
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
