import { describe, expect, test } from 'bun:test'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { type AttemptPolicy, tryTargets } from './attempt.ts'

const targets: Target[] = ['one', 'two', 'three'].map((id) => ({ provider: { id, kind: 'test' }, model: 'm' }))
const unreachable = new GatewayError('upstream_unreachable', 'No connection.')
const notAccepted = new GatewayError('upstream_unreachable', 'No connection.', { accepted: 'no' })

/** Tries targets that fail in this order, then answer; which of them were tried, and how it ended. */
async function attempt(failures: unknown[], policy: AttemptPolicy, signal = new AbortController().signal) {
  const tried: string[] = []
  const failed: string[] = []
  const left = [...failures]
  const outcome = tryTargets(targets, {
    signal,
    policy,
    async execute({ provider }) {
      if (left.length > 0) throw left.shift()
      return provider.id
    },
    observer: {
      attemptStarted: ({ provider }) => void tried.push(provider.id),
      attemptFailed: ({ provider }) => void failed.push(provider.id),
    },
  })
  return { outcome: await outcome.catch((error: unknown) => error), tried, failed }
}

describe('until_answered', () => {
  test('tries each target once, in order, until one succeeds', async () => {
    const two = await attempt([unreachable, unreachable], 'until_answered')
    expect(two).toEqual({ outcome: 'three', tried: ['one', 'two', 'three'], failed: ['one', 'two'] })
    const all = await attempt([unreachable, unreachable, unreachable], 'until_answered')
    expect(all).toEqual({ outcome: unreachable, tried: ['one', 'two', 'three'], failed: ['one', 'two', 'three'] })
  })

  test.each([
    new GatewayError('invalid_value', 'Wrong at every target.'),
    new GatewayError('internal_error', 'A fault of the gateway.'),
    new TypeError('A fault of the gateway.'),
  ])('stops after an error that the target did not cause: %p', async (error) => {
    expect(await attempt([error], 'until_answered')).toEqual({ outcome: error, tried: ['one'], failed: ['one'] })
  })

  test('stops when the client has left', async () => {
    expect((await attempt([unreachable], 'until_answered', AbortSignal.abort())).tried).toEqual(['one'])
  })

  test('fails without a target', async () => {
    const parts = { policy: 'until_answered' as const, execute: async () => 0, signal: new AbortController().signal }
    const observer = { attemptStarted() {}, attemptFailed() {} }
    await expect(tryTargets([], { ...parts, observer })).rejects.toMatchObject({ code: 'no_available_channel' })
  })
})

test('until_accepted tries the next target only after a request that was certainly not accepted', async () => {
  const { outcome, tried } = await attempt([notAccepted, unreachable], 'until_accepted')
  expect({ outcome, tried }).toEqual({ outcome: unreachable, tried: ['one', 'two'] })
})
