import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { ErrorCode } from '../../spec/error.ts'
import { errorFromBody, errorFromResponse, scrub } from './provider-error.ts'

const NOW = Date.UTC(2026, 0, 1)

function refused(status: number, payload: unknown = {}, headers: Record<string, string> = {}) {
  return errorFromResponse({
    provider: 'vendor',
    model: 'm-1',
    status,
    headers: new Headers(headers),
    payload,
    clock: manualClock(NOW),
  })
}

const summary = (message: string, more: Record<string, unknown> = {}) => ({ error: { message, ...more } })

describe('maps a status to the gateway’s code', () => {
  test.each([
    [302, 'bad_upstream_response', 502],
    [400, 'upstream_invalid_request', 400],
    [401, 'upstream_auth', 502],
    [402, 'no_available_channel', 503],
    [403, 'upstream_auth', 502],
    [404, 'bad_upstream_response', 502],
    [408, 'upstream_timeout', 504],
    [413, 'request_too_large', 413],
    [418, 'bad_upstream_response', 502],
    [422, 'upstream_invalid_request', 400],
    [429, 'rate_limit_exceeded', 429],
    [498, 'server_is_overloaded', 503],
    [500, 'bad_upstream_response', 502],
    [502, 'bad_upstream_response', 502],
    [503, 'server_is_overloaded', 503],
    [504, 'upstream_timeout', 504],
    [524, 'upstream_timeout', 504],
    [529, 'server_is_overloaded', 503],
  ] as [number, ErrorCode, number][])('%d -> %s', (status, code, ours) => {
    const error = refused(status, summary('x'))
    expect(error.code).toBe(code)
    expect(error.status).toBe(ours)
    expect(error.detail.upstream_status).toBe(status)
  })

  test('includes the provider’s message and the field for the caller’s own mistakes', () => {
    expect(refused(400, summary('Bad top_p', { param: 'top_p' }))).toMatchObject({
      message: 'Bad top_p',
      detail: { param: 'top_p' },
    })
  })

  test('leaves out the provider’s message for a failure of the provider', () => {
    for (const status of [401, 403, 404, 429, 500, 503])
      expect(refused(status, summary('inner words')).message).not.toContain('inner')
  })

  test('never reports the gateway’s credentials as the caller’s', () => {
    const error = refused(401, summary('Incorrect API key provided', { code: 'invalid_api_key' }))
    expect(error.message).toContain('"vendor"')
    expect(error.message).toContain('operator')
  })

  test('names an unknown model with its provider', () => {
    expect(refused(404).message).toMatch(/"vendor".*"m-1"/)
    expect(refused(400, summary('no', { code: 'model_not_found' })).code).toBe('bad_upstream_response')
  })
})

describe('errors recognised by their message', () => {
  test.each([
    ['OpenAI', 400, summary('Your input is too long', { code: 'context_length_exceeded' })],
    [
      'vLLM',
      400,
      { object: 'error', message: "This model's maximum context length is 4096 tokens.", type: 'BadRequestError' },
    ],
    [
      'Anthropic',
      400,
      summary('prompt is too long: 210000 tokens > 200000 maximum', { type: 'invalid_request_error' }),
    ],
    [
      'Gemini',
      400,
      [
        {
          error: {
            code: 400,
            message: 'The input token count (2000000) exceeds the maximum',
            status: 'INVALID_ARGUMENT',
          },
        },
      ],
    ],
    [
      'llama.cpp',
      400,
      summary('the request exceeds the available context size', { type: 'exceed_context_size_error' }),
    ],
    ['Groq', 413, summary('Please reduce the length of the messages', { code: 'context_length_exceeded' })],
  ])('%s: input too long', (_, status, payload) => {
    const error = refused(status, payload)
    expect(error.code).toBe('context_length_exceeded')
    expect(error.message).toContain('maximum context length') // the phrase by which clients recognise it
  })

  test.each([
    [
      'Azure',
      400,
      summary('The response was filtered', {
        code: 'content_filter',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      }),
    ],
    ['OpenAI', 400, summary('rejected as a result of our safety system', { code: 'content_policy_violation' })],
    [
      'OpenRouter',
      403,
      summary('requires moderation', { code: 403, metadata: { reasons: ['violence'], flagged_input: 'x' } }),
    ],
  ])('%s: refused content', (_, status, payload) => {
    expect(refused(status, payload).code).toBe('content_policy_violation')
  })

  test.each([
    [
      'OpenAI',
      429,
      summary('You exceeded your current quota', { type: 'insufficient_quota', code: 'insufficient_quota' }),
    ],
    ['DeepSeek', 402, summary('Insufficient Balance')],
    ['Anthropic', 400, summary('Your credit balance is too low to access the API')],
    ['Alibaba', 400, summary('Access denied', { code: 'Arrearage' })],
  ])('%s: the operator’s account has no credit, which is not the caller’s quota', (_, status, payload) => {
    expect(refused(status, payload).code).toBe('no_available_channel')
  })

  test.each([
    ['OpenAI', summary('Rate limit reached. Add a payment method at https://vendor.example/account/billing')],
    ['Groq', summary('Rate limit reached. Upgrade at https://vendor.example/settings/billing', { type: 'tokens' })],
    [
      'Gemini',
      summary('You exceeded your current quota, please check your plan and billing details.', {
        details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' }],
      }),
    ],
  ])('%s: a rate limit that mentions billing is still a rate limit', (_, payload) => {
    expect(refused(429, payload).code).toBe('rate_limit_exceeded')
  })

  test.each([
    [
      'Gemini',
      [
        {
          error: { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' },
        },
      ],
    ],
    ['xAI', { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***yz.' }],
  ])('%s returns 400 for a bad key', (_, payload) => {
    expect(refused(400, payload).code).toBe('upstream_auth')
  })

  test.each([
    ['a nested error', summary('why')],
    ['an error that is text', { error: 'why' }],
    ['a flat message', { object: 'error', message: 'why', type: 'x', code: 3001 }],
    ['a detail', { detail: 'why' }],
    ['a list around it', [summary('why')]],
  ])('finds the message in %s', (_, payload) => {
    expect(refused(422, payload).message).toBe('why')
  })

  test('includes the places of a list of faults', () => {
    const payload = { message: { detail: [{ loc: ['body', 'store'], msg: 'Extra inputs are not permitted' }] } }
    expect(refused(422, payload).message).toBe('body.store: Extra inputs are not permitted')
  })

  test.each([[undefined], [null], ['<html>'], [[]], [{ error: null }]])('creates a message for %p', (payload) => {
    expect(refused(400, payload).message.length).toBeGreaterThan(5)
  })
})

describe('the time to retry', () => {
  test.each([
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '1.2' }, 2],
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 2],
    [{ 'retry-after': new Date(NOW + 30_000).toUTCString() }, 30],
    [{ 'retry-after': new Date(NOW - 30_000).toUTCString() }, 0],
    [{ 'retry-after': '99999999' }, 86_400],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ] as [Record<string, string>, number | undefined][])('%j -> %p', (headers, seconds) => {
    expect(refused(429, {}, headers).detail.retry_after).toBe(seconds as number)
    expect(refused(503, {}, headers).detail.retry_after).toBe(seconds as number)
  })

  test('is in the body of Google’s errors', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '33.6s' }]
    expect(refused(429, summary('slow', { details })).detail.retry_after).toBe(34)
  })
})

describe('an error in place of a response', () => {
  test.each([
    [summary('x', { code: 429 }), 'rate_limit_exceeded'],
    [summary('x', { code: 502 }), 'bad_upstream_response'],
    [summary('x', { type: 'overloaded_error' }), 'server_is_overloaded'],
    [summary('x', { code: 'rate_limit_exceeded' }), 'rate_limit_exceeded'],
    [summary('x', { type: 'invalid_request_error' }), 'upstream_invalid_request'],
    [summary('x', { type: 'invalid_request_error', code: 'context_length_exceeded' }), 'context_length_exceeded'],
    [summary('x', { status: 'RESOURCE_EXHAUSTED' }), 'rate_limit_exceeded'],
    [summary('x', { type: 'server_error' }), 'bad_upstream_response'],
    [summary('x'), 'bad_upstream_response'],
    ['broken', 'bad_upstream_response'],
  ] as [unknown, ErrorCode][])('%j -> %s', (payload, code) => {
    const error = errorFromBody({ provider: 'v', model: 'm', payload, clock: manualClock() })
    expect(error.code).toBe(code)
  })
})

describe('secrets', () => {
  test('removes everything that looks like a key', () => {
    const text = [
      'Bearer abcdef123456',
      'sk-proj-abcdEFGH1234',
      'sk-ab****************yz12',
      'gsk_abcdefgh1234',
      'AIzaSyA-1234567890',
      'xai-abcdefgh12345678',
      'https://user:pass@host/v1?key=verysecret&x=1',
    ].join(' ; ')
    const clean = scrub(text)
    for (const secret of ['abcdef', 'abcdEFGH', 'yz12', 'AIza', 'pass', 'verysecret']) {
      expect(clean).not.toContain(secret)
    }
    expect(clean).toContain('x=1')
  })

  test('keeps ordinary text', () => {
    const text =
      "Invalid value 'sk-1' for task-force; the key-value store is down, see https://vendor.example/docs?page=2"
    expect(scrub(text)).toBe(text)
  })

  test('limits a message to 1000 characters', () => {
    expect(scrub('x'.repeat(1000))).toHaveLength(1000)
    expect(scrub('x'.repeat(1001))).toHaveLength(1000)
  })

  test('drops a field name that is not a path', () => {
    expect(refused(400, summary('x', { param: 'messages.[0].content' })).detail.param).toBe('messages.[0].content')
    expect(refused(400, summary('x', { param: 'a prompt, quoted' })).detail).not.toHaveProperty('param')
  })
})
