import { describe, expect, it } from 'bun:test'
import { entry } from '../../../test/kit/ledger.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import { correctionsFor } from './corrections.ts'

const DAY = Date.UTC(2026, 0, 1) / 1000
const MODEL = 'general'

/** Counted at 10 tokens of input and 100 of output, for 210 nano-units. */
const call = (entry_id: string, change: Partial<LedgerEntry> = {}): LedgerEntry =>
  entry({
    entry_id: `${entry_id}:interrupted`,
    kind: 'interrupted',
    units: { input_tokens: 10, output_tokens: 100, images: 1, estimated: true },
    estimated: 1,
    amount: 210,
    cost: 210,
    price: 'v1',
    ...change,
  })

type Counts = { requests?: number; input_tokens?: number; output_tokens?: number }

/** Beside these calls the ledger has one that used 5 tokens of input and 50 of output. */
function corrected(interrupted: LedgerEntry[], exported: Counts | undefined, estimated = interrupted.length) {
  const own = {
    day: DAY,
    upstream_model: MODEL,
    requests: 1 + interrupted.length,
    input_tokens: 5 + 10 * interrupted.length,
    output_tokens: 50 + 100 * interrupted.length,
    cost: 0n,
    estimated,
    interrupted: interrupted.length,
  }
  return correctionsFor({
    interrupted,
    days: [own],
    exported: exported ? [{ day: DAY, model: MODEL, ...exported }] : [],
    chargeFor: ({ price }, { input_tokens, output_tokens }) =>
      price === 'v1' ? { amount: input_tokens + 2 * output_tokens, cost: input_tokens } : undefined,
  })
}

const changes = ({ entry_id, kind, units, requests, estimated, amount, cost }: LedgerEntry) => ({
  entry_id,
  kind,
  units,
  requests,
  estimated,
  amount,
  cost,
})

describe('the correction of interrupted calls', () => {
  it('corrects one call to what the provider counts beside the other entries', () => {
    const { entries, left } = corrected([call('a')], { requests: 2, input_tokens: 12, output_tokens: 80 })
    expect(left).toEqual([])
    expect(entries.map(changes)).toEqual([
      {
        entry_id: 'a:interrupted:adjustment',
        kind: 'adjustment',
        units: { input_tokens: -3, output_tokens: -70, images: -1 },
        requests: 0,
        estimated: -1,
        amount: 7 + 60 - 210,
        cost: 7 - 210,
      },
    ])
  })

  it('takes back calls that the provider has not received, of whatever tokens', () => {
    const calls = [call('a'), call('b', { token_id: 'tok_b', price: 'gone' })]
    const { entries } = corrected(calls, { requests: 1, input_tokens: 5, output_tokens: 50 })
    expect(entries).toMatchObject([
      { requests: -1, amount: -210, cost: -210, token_id: 'tok_a' },
      { requests: -1, amount: -210, cost: -210, token_id: 'tok_b' },
    ])
  })

  it('divides what calls of one token have used together', () => {
    const { entries } = corrected([call('a'), call('b')], { requests: 2, input_tokens: 17, output_tokens: 160 })
    expect(entries.map(({ units, requests }) => [units.input_tokens, units.output_tokens, requests])).toEqual([
      [0, 0, 0],
      [-8, -90, -1],
    ])
  })

  const both = { requests: 2, input_tokens: 12, output_tokens: 80 }
  it.each([
    ['the file has no row of that day', [call('a')], undefined, undefined],
    ['the file has no column input_tokens or output_tokens', [call('a')], { requests: 2 }, undefined],
    ['other entries of that day and model are estimates', [call('a')], both, 2],
    ['the provider counts less than the other entries', [call('a')], { ...both, output_tokens: 49 }, undefined],
    [
      'the provider counts more than these calls can have used',
      [call('a')],
      { ...both, output_tokens: 151 },
      undefined,
    ],
    ['the provider counts more than these calls can have used', [call('a')], { ...both, requests: 3 }, undefined],
    ['they are of several tokens, end users or models', [call('a'), call('b', { token_id: 'b' })], both, undefined],
    ['their prices are not those of the configuration any more', [call('a', { price: 'gone' })], both, undefined],
  ])('leaves calls where %s', (reason, calls, exported, estimated) => {
    expect(corrected(calls, exported, estimated)).toEqual({
      entries: [],
      left: [{ day: DAY, model: MODEL, calls: calls.length, reason }],
    })
  })
})
