import { describe, expect, test } from 'bun:test'
import { ERRORS, type ErrorCode, GatewayError } from '../../../spec/error.ts'
import { FAIL_CODES } from '../../../spec/task.ts'
import { classifyError, mayPass, reasonFrom } from './fail-code.ts'

const verdict = (code: ErrorCode) => {
  const { fail_code, refusal } = classifyError(new GatewayError(code, ''))
  return `${fail_code} ${refusal}`
}

test('classifies errors as common to all targets, of one target, or temporary', () => {
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

test('every error code of the gateway maps to a documented fail_code', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    expect(FAIL_CODES).toHaveProperty(classifyError(new GatewayError(code, '')).fail_code)
  }
})

test('media that cannot be fetched now are retried; invalid media are not', () => {
  expect(mayPass(new GatewayError('upstream_unreachable', ''))).toBe(true)
  expect(mayPass(new GatewayError('upstream_timeout', ''))).toBe(true)
  for (const code of ['invalid_value', 'output_gone', 'output_refused', 'unsupported_value'] as const) {
    expect(mayPass(new GatewayError(code, ''))).toBe(false)
  }
  expect(mayPass(new GatewayError('input_media_invalid', '', { retry_after: 5 }))).toBe(true)
})

describe('the reason for the client', () => {
  test('contains no URL and no key', () => {
    expect(reasonFrom('fetch of https://api.acme.test/v1?key=sk-123 (gs://bucket/x) failed')).toBe(
      'fetch of (address) ((address)) failed',
    )
    expect(reasonFrom('refused Bearer abc.def.ghi here')).toBe('refused Bearer (secret) here')
  })

  test('is one line of at most 500 characters', () => {
    expect(reasonFrom('a\r\n\tb\u0000c')).toBe('a b c')
    expect(reasonFrom('x'.repeat(500))).toHaveLength(500)
    expect(reasonFrom('x'.repeat(501))).toHaveLength(500)
    expect(reasonFrom('x'.repeat(501)).endsWith('...')).toBe(true)
  })
})
