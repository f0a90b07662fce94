import { describe, expect, test } from 'bun:test'
import type { GatewayError } from '../spec/error.ts'
import { createByteBudget } from './load.ts'

const budget = (all: number, token?: number) =>
  createByteBudget({ max_bytes_in_flight: all, max_token_bytes_in_flight: token })

function refusal(work: () => void): unknown {
  try {
    work()
    return 'accepted'
  } catch (error) {
    const { code, status, detail } = error as GatewayError
    return [code, status, detail.retry_after]
  }
}
const OVER_ALL = ['server_is_overloaded', 503, 1]
const OVER_TOKEN = ['rate_limit_exceeded', 429, 1]

describe('the bytes that open requests hold', () => {
  test('may reach the limit of all tokens, and not exceed it by one', () => {
    const bytes = budget(100, 100)
    bytes.take('tok_a', 60)
    bytes.take('tok_b', 40)
    expect(refusal(() => bytes.take('tok_c', 1))).toEqual(OVER_ALL)
    expect(bytes.held()).toBe(100)
  })

  test('may reach the limit of one token, and not exceed it by one', () => {
    const bytes = budget(100, 50)
    bytes.take('tok_a', 30)
    expect(refusal(() => bytes.take('tok_a', 21))).toEqual(OVER_TOKEN)
    bytes.take('tok_a', 20)
    bytes.take('tok_b', 50)
  })

  test('of one token are at most half of all where nothing else is configured', () => {
    const bytes = budget(100)
    bytes.take('tok_a', 50)
    expect(refusal(() => bytes.take('tok_a', 1))).toEqual(OVER_TOKEN)
  })

  test('leave room again once a request has ended', () => {
    const bytes = budget(100, 100)
    bytes.take('tok_a', 100)
    expect(refusal(() => bytes.take('tok_b', 1))).toEqual(OVER_ALL)
    bytes.release('tok_a', 100)
    bytes.take('tok_b', 100)
    expect(bytes.held()).toBe(100)
  })

  test('of a single body may exceed every limit: waiting would not help it', () => {
    const bytes = budget(100, 50)
    bytes.take('tok_a', 1_000)
    expect(refusal(() => bytes.take('tok_a', 1))).toEqual(OVER_ALL)
  })

  test('include answers, which are never refused but leave less for bodies', () => {
    const bytes = budget(100, 50)
    bytes.add('tok_a', 1_000)
    expect(refusal(() => bytes.take('tok_b', 1))).toEqual(OVER_ALL)
    bytes.release('tok_a', 980)
    expect(refusal(() => bytes.take('tok_a', 31))).toEqual(OVER_TOKEN)
    bytes.take('tok_a', 30)
  })

  test('have a limit even where none is configured', () => {
    const bytes = createByteBudget({ max_bytes_in_flight: undefined, max_token_bytes_in_flight: undefined })
    bytes.take('tok_a', 1)
    expect(refusal(() => bytes.take('tok_a', Number.MAX_SAFE_INTEGER))).toEqual(OVER_ALL)
    bytes.take('tok_a', 100 * 1024 * 1024)
  })
})
