import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import type { Context, Outcome } from './context.ts'
import { textResponse } from './live.ts'

function sent(text: string) {
  const clock = manualClock()
  const counted: number[] = []
  const outcomes: Outcome[] = []
  const context = {
    signal: new AbortController().signal,
    sendLater: (bytes: number) => void counted.push(bytes),
    finish: (outcome: Outcome) => void outcomes.push(outcome),
    withHeaders: (headers: Record<string, string>) => headers,
  }
  const response = textResponse(text, context as Partial<Context> as Context, clock, {})
  return { response, clock, counted, outcomes }
}

const LENGTH = 300_000

describe('a large text response', () => {
  it('counts one byte for each character of a Latin-1 text, and two of any other', () => {
    expect(sent('\u00e9'.repeat(LENGTH)).counted).toEqual([LENGTH])
    expect(sent(`${'a'.repeat(LENGTH - 1)}\u0100`).counted).toEqual([2 * LENGTH])
    expect(sent('a'.repeat(256 * 1024)).counted).toEqual([])
  })

  it('arrives whole, and ends once', async () => {
    const text = `a${'\u{1f9ad}'.repeat(LENGTH)}`
    const { response, outcomes, clock } = sent(text)
    expect(await response.text()).toBe(text)
    expect([outcomes, clock.waiting()]).toEqual([['done'], 0])
  })

  it('ends when its client has read nothing for a minute since its last read, and not before', async () => {
    const { response, outcomes, clock } = sent('a'.repeat(LENGTH))
    const reader = response.body?.getReader()
    clock.advance(59_999)
    await reader?.read()
    clock.advance(59_999)
    expect(outcomes).toEqual([])
    clock.advance(1)
    expect([outcomes, clock.waiting()]).toEqual([['client_gone'], 0])
    expect(reader?.read()).rejects.toThrow('read nothing')
  })
})
