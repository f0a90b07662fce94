import { describe, expect, test } from 'bun:test'
import { Type } from 'typebox'
import { ChatRequest } from '../spec/chat-request.ts'
import { fieldsOf, fieldWarning, type KnownFields } from './body.ts'

const knownOf = (schema: Parameters<typeof fieldsOf>[0]): KnownFields => {
  const known = fieldsOf(schema)
  if (known === undefined) throw new Error('The schema names no fields.')
  return known
}
const chat = knownOf(ChatRequest)

describe('the warning for a body', () => {
  test.each([
    ['a missing letter', { temprature: 1 }, 'Unknown field "temprature"; did you mean "temperature"?'],
    ['two swapped letters', { steram: true }, 'Unknown field "steram"; did you mean "stream"?'],
    ['another case', { maxTokens: 1 }, 'Unknown field "maxTokens"; did you mean "max_tokens"?'],
    ['a singular', { tool: [] }, 'Unknown field "tool"; did you mean "tools"?'],
    [
      'two of them',
      { mesages: [], max_token: 1 },
      'Unknown field "mesages"; did you mean "messages"? Unknown field "max_token"; did you mean "max_tokens"?',
    ],
  ])('names the field that was probably meant for %s', (_, body, warning) => {
    expect(fieldWarning({ model: 'm', ...body }, chat)).toBe(warning)
  })

  test.each([
    ['only known fields', { messages: [], temperature: 1 }],
    ['a field that resembles none', { chat_template_kwargs: {} }],
    ['a field whose near one is there too', { temperature: 1, temprature: 2 }],
    ["another vendor's field of a near name", { models: [], mode: 'fast', min_tokens: 1, top_a: 1, speed: 1 }],
    ['a name of two letters', { nn: 1 }],
    ['a name that no header can carry', { temperaturé: 1, 'temperatur\n': 1, 'temperatur"': 1 }],
    ['a name of more than 40 characters', { [`${'x'.repeat(41)}`]: 1 }],
    ['a list', ['temprature']],
    ['no object', 'temprature'],
    ['nothing', null],
  ])('is absent for %s', (_, body) => {
    expect(fieldWarning(body, chat)).toBeUndefined()
  })

  test('compares at most eight unknown fields', () => {
    const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`zzzzzz${at}`, 1]))
    expect(fieldWarning({ ...unknown(7), temprature: 1 }, chat)).toContain('temperature')
    expect(fieldWarning({ ...unknown(8), temprature: 1 }, chat)).toBeUndefined()
  })

  test('remembers at most 200 unknown names, and answers for others as well', () => {
    const known = knownOf(ChatRequest)
    for (let at = 0; at < 300; at++) fieldWarning({ [`zzzzzz${at}`]: 1 }, known)
    expect(known.meant.size).toBe(200)
    expect(fieldWarning({ temprature: 1 }, known)).toContain('temperature')
  })
})

describe('the fields of a schema', () => {
  test('are those of all its members, in camelCase and snake_case', () => {
    const schema = Type.Union([
      Type.Object({ topK: Type.Number() }),
      Type.Intersect([Type.Object({ b: Type.Number() })]),
    ])
    expect([...knownOf(schema).names]).toEqual(['topK', 'b', 'top_k'])
  })

  test('are unknown without a schema, and for one that names none', () => {
    expect(fieldsOf(undefined)).toBeUndefined()
    expect(fieldsOf(Type.String())).toBeUndefined()
  })
})
