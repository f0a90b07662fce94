import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../spec/error.ts'
import { payloadOf } from './chunk-stream.ts'
import type { Faults } from './upstream.ts'

const faults: Faults = {
  inAnswer: (payload) => new GatewayError('upstream_invalid_request', JSON.stringify(payload)),
  notUnderstood: (what) => new GatewayError('bad_upstream_response', what),
  cut: () => new GatewayError('upstream_cut', 'cut'),
}
type Options = { event?: string; atEnd?: boolean; isFailure?: () => boolean }

const read = (data: string, { event = '', atEnd = false, isFailure }: Options = {}) =>
  payloadOf({ event, data }, { faults, atEnd, isFailure })

describe('payloadOf', () => {
  test.each(['', ': OPENROUTER PROCESSING', '[DONE]', ' [DONE] '])('ignores the data %p', (data) => {
    expect(read(data)).toBeUndefined()
  })

  test('returns the object, also from a list', () => {
    expect(read('{"a":1}')).toEqual({ a: 1 })
    expect(read('[{"a":1}]')).toEqual({ a: 1 })
  })

  test('ignores JSON that is cut by the end of the body, but no other invalid JSON', () => {
    expect(read('{"a":', { atEnd: true })).toBeUndefined()
    expect(read('{"a":')).toMatchObject({ code: 'bad_upstream_response' })
    expect(read('"text"', { atEnd: true })).toMatchObject({ code: 'bad_upstream_response' })
  })

  test.each([
    ['an object that holds an error', '{"error":{"message":"no"}}', {}],
    ['an event named "error"', '{"message":"no"}', { event: 'error' }],
    ['text in an event named "error"', 'no', { event: 'error' }],
    ['a form that only the protocol knows', '{"type":"failed"}', { isFailure: () => true }],
  ])('returns the error of %s', (_, data, parts) => {
    expect(read(data, parts)).toMatchObject({ code: 'upstream_invalid_request' })
  })
})
