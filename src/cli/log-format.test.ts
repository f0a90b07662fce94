import { describe, expect, test } from 'bun:test'
import type { LogFields, LogLevel } from '../kit/log.ts'
import { terminalFormat } from './log-format.ts'

const NOW = Date.UTC(2026, 10, 22, 10, 1, 2, 345)

const plain = (event: string, fields: LogFields, level: LogLevel = 'info') =>
  terminalFormat({ color: false })({ now: NOW, level, event, fields })

const REQUEST = {
  request_id: 'req_1',
  method: 'POST',
  path: '/v1/chat/completions',
  status: 200,
  outcome: 'ok',
  total_ms: 152.4,
  model: 'acme/large',
  target: 'acme/large-2',
  input_tokens: 12,
  output_tokens: 40,
}

describe('a log line on a terminal', () => {
  test('shows a successful request in columns, without its request id', () => {
    expect(plain('request', REQUEST)).toBe(
      '10:01:02 info  POST /v1/chat/completions          200    152 ms  acme/large -> acme/large-2  12+40 tokens\n',
    )
  })

  test('shows the request id, the attempts and the outcome of a failed request', () => {
    expect(plain('request', { ...REQUEST, status: 502, outcome: 'client_gone', attempts: 2, estimated: true })).toBe(
      '10:01:02 info  POST /v1/chat/completions          502    152 ms  acme/large -> acme/large-2  ~12+40 tokens  2 attempts  client_gone  request_id=req_1\n',
    )
  })

  test('shows a request without a model, and fields that it does not know', () => {
    const fields = { method: 'GET', path: '/healthz', status: 200, outcome: 'ok', total_ms: 0.2, extra: 'x' }
    expect(plain('request', fields)).toBe('10:01:02 info  GET /healthz                       200      0 ms  extra=x\n')
  })

  test('aligns other events and leaves out empty fields', () => {
    expect(plain('stopping', { signal: 'SIGTERM', deadline_seconds: 25, none: undefined, empty: '' }, 'warn')).toBe(
      '10:01:02 warn  stopping                   signal=SIGTERM  deadline_seconds=25\n',
    )
    expect(plain('stopped', {})).toBe('10:01:02 info  stopped\n')
  })

  test('is one line without control characters, and shortens values above 160 characters', () => {
    const line = plain('event', { cause: 'a\n\u001b[2Jb', exact: 'x'.repeat(160), long: 'y'.repeat(161) })
    expect(line).toContain(`cause=a [2Jb  exact=${'x'.repeat(160)}  long=${'y'.repeat(157)}...\n`)
    expect(line.trimEnd()).not.toMatch(/\p{Cc}/u)
  })

  test('is coloured by level and status only where colours are allowed', () => {
    const line = terminalFormat({ color: true })({
      now: NOW,
      level: 'error',
      event: 'request',
      fields: { ...REQUEST, status: 500 },
    })
    expect(line).toContain('\u001b[31merror\u001b[0m')
    expect(line).toContain('\u001b[31m500\u001b[0m')
    expect(plain('request', REQUEST)).not.toContain('\u001b')
  })
})
