import { expect, test } from 'bun:test'
import Type from 'typebox'
import { diagnose } from '../../kit/diagnose.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ChatRequest } from './canonical.ts'
import { errorTranslator, places, refusalOf } from './request-error.ts'

const retold = errorTranslator({
  fields: { stop: 'stop_sequences' },
  parts: [['"file"', '"document"']],
  inMessage: ({ part, rest }) => part && `${places.get(part)}${rest}`,
})
const part = { type: 'text' as const, text: 'Hello' }
const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: [part] }] }
places.set(part, 'turns[0].blocks[3]')
const translatedOf = (param: string) => {
  const error = new GatewayError('invalid_value', `"${param}" of "file" is wrong.`, { param })
  const { message, detail } = retold(error, request)
  return [detail.param, message]
}

test.each([
  ['stop[2]', 'stop_sequences', '"stop_sequences" of "file" is wrong.'],
  ['messages[0].content[0].type', 'turns[0].blocks[3].type', '"turns[0].blocks[3].type" of "document" is wrong.'],
  // A place without a counterpart stays canonical.
  ['messages[7].role', 'messages[7].role', '"messages[7].role" of "file" is wrong.'],
  ['tools[1].function.name', 'tools[1].name', '"tools[1].name" of "file" is wrong.'],
  // An upstream may send any name.
  ['constructor', 'constructor', '"constructor" of "file" is wrong.'],
])('translates an error about %s to %s', (param, place, message) => {
  expect(translatedOf(param)).toEqual([place, message])
})

test.each([
  [{}, '"tool.extra" is not known; there may be no member.'],
  [{ type: Type.Optional(Type.String()) }, '"tool.extra" is not known; there may be "type".'],
])('names what an object with the members %j may have instead of an unknown one', (members, message) => {
  const schema = Type.Object({ tool: Type.Object(members, { additionalProperties: false }) })
  expect(refusalOf(diagnose(schema, { tool: { extra: 1 } })).message).toBe(message)
})
