import { describe, expect, test } from 'bun:test'
import { ERRORS, type ErrorCode, GatewayError } from '../../spec/error.ts'
import { FAIL_CODES } from '../../spec/task.ts'
import { classifyError, mayPass, reasonFrom } from './fail-code.ts'

const verdict = (code: ErrorCode) => {
  const { fail_code, refusal } = classifyError(new GatewayError(code, ''))
  return `${fail_code} ${refusal}`
}

test('a refusal that every target would share is told from one of this target, and from one that passes', () => {
  expect(verdict('content_policy_violation')).toBe('content_policy_violation every')
  expect(verdict('upstream_invalid_request')).toBe('invalid_input every')
  expect(verdict('invalid_value')).toBe('invalid_input every')
  expect(verdict('unsupported_value')).toBe('invalid_input every')
  expect(verdict('unsupported_parameter')).toBe('invalid_input every')
  expect(verdict('upstream_auth')).toBe('upstream_auth target')
  expect(verdict('insufficient_quota')).toBe('insufficient_quota target')
  expect(verdict('model_not_found')).toBe('model_unavailable target')
  expect(verdict('rate_limit_exceeded')).toBe('upstream_rate_limited passing')
  expect(verdict('no_available_channel')).toBe('model_unavailable passing')
  expect(verdict('server_is_overloaded')).toBe('upstream_error passing')
  expect(verdict('upstream_unreachable')).toBe('upstream_error passing')
  expect(verdict('bad_upstream_response')).toBe('upstream_error passing')
})

test('every error of the house has a fail_code of the closed list', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    expect(FAIL_CODES).toHaveProperty(classifyError(new GatewayError(code, '')).fail_code)
  }
})

test('media that could not be had now may be had later; those that are wrong may not', () => {
  expect(mayPass(new GatewayError('upstream_unreachable', ''))).toBe(true)
  expect(mayPass(new GatewayError('upstream_timeout', ''))).toBe(true)
  for (const code of ['invalid_value', 'output_gone', 'output_refused', 'unsupported_value'] as const) {
    expect(mayPass(new GatewayError(code, ''))).toBe(false)
  }
  expect(mayPass(new GatewayError('input_media_invalid', '', { retry_after: 5 }))).toBe(true)
})

describe('the reason for the client', () => {
  test('holds no address and no key', () => {
    expect(reasonFrom('fetch of https://api.acme.test/v1?key=sk-123 (gs://bucket/x) failed')).toBe(
      'fetch of (address) ((address)) failed',
    )
    expect(reasonFrom('refused Bearer abc.def.ghi here')).toBe('refused Bearer (secret) here')
  })

  test('stays one line of at most 500 characters', () => {
    expect(reasonFrom('a\r\n\tb\u0000c')).toBe('a b c')
    expect(reasonFrom('x'.repeat(500))).toHaveLength(500)
    expect(reasonFrom('x'.repeat(501))).toHaveLength(500)
    expect(reasonFrom('x'.repeat(501)).endsWith('...')).toBe(true)
  })
})
