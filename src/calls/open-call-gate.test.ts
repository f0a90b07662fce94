import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { testCall } from '../../test/kit/pipeline.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { compiledPrices } from '../models/prices.ts'
import type { OpenCall } from '../store/ledger/ledger-entry.ts'
import type { AdmissionRequest, CallRecord } from './call.ts'
import { createOpenCallGate } from './open-call-gate.ts'

/** A model whose output costs so many nano-units a token; null: its price is unknown. */
function model(id: string, nano: number | null): CatalogueModel {
  const prices = nano === null ? undefined : { input: 0, output: nano / 1_000 }
  return {
    id,
    targets: [],
    ...compiledPrices({ prices }, { currency: 'USD', exchange_rates: {} }),
  } as unknown as CatalogueModel
}

function setUp({ isDurable = true } = {}) {
  const opened: OpenCall[] = []
  const raised: OpenCall[] = []
  const closed: string[] = []
  const clock = manualClock()
  const gate = createOpenCallGate({
    isDurable: () => isDurable,
    open: async (call) => void opened.push(call),
    raise: async (call) => void raised.push(call),
    close: (entry_id) => void closed.push(entry_id),
    clock,
  })
  const call = testCall({ token_id: 'tok_a' } as Parameters<typeof testCall>[0])
  const record: CallRecord = { call, family: 'chatcompat', at: 0, attempts: [], is_stream: false, error: undefined }
  call.record = record
  const units = { input_tokens: 0, output_tokens: 10 }
  const request = (of: CatalogueModel, rest: Partial<AdmissionRequest> = {}): AdmissionRequest => {
    return { call, family: 'chatcompat', model: of, estimate: { expected: units, most: units }, ...rest }
  }
  return { gate, request, record, opened, raised, closed }
}

describe('the gate of a durable ledger', () => {
  it('raises what is recorded of an open call when a dearer fallback takes over, not when a cheaper one does', async () => {
    const { gate, request, opened, raised } = setUp()
    const hold = await gate.admit(request(model('a/cheap', 2_000)))
    const [first] = opened
    const amount = first?.entry.amount ?? 0
    expect(amount).toBeGreaterThan(0)
    expect(hold?.moveTo(request(model('a/cheaper', 1_000)))).toBeUndefined()
    await hold?.moveTo(request(model('a/dear', 6_000)))
    await hold?.moveTo(request(model('a/middle', 3_000)))
    expect(raised).toMatchObject([{ entry_id: first?.entry_id, entry: { model: 'a/dear' } }])
    expect(raised[0]?.entry.amount).toBeGreaterThan(2.9 * amount)
  })

  it('keeps the known amount when the price of the fallback is unknown', async () => {
    const { gate, request, raised } = setUp()
    const hold = await gate.admit(request(model('a/cheap', 2_000)))
    expect(hold?.moveTo(request(model('a/free', null)))).toBeUndefined()
    expect(raised).toEqual([])
  })

  it('opens neither the submission of a task, which is recorded itself, nor a call of a normal ledger', () => {
    const { gate, request, opened } = setUp()
    expect(gate.admit(request(model('a/film', 1), { is_unrecorded: true }))).toBeUndefined()
    const normal = setUp({ isDurable: false })
    expect(normal.gate.admit(normal.request(model('a/b', 1)))).toBeUndefined()
    expect([...opened, ...normal.opened]).toEqual([])
  })

  it('closes a call that is settled without an entry', async () => {
    const { gate, request, record, opened, closed } = setUp()
    const hold = await gate.admit(request(model('a/b', 1)))
    hold?.settle({ input_tokens: 0, output_tokens: 0 }, 0)
    expect(closed).toEqual(opened.map(({ entry_id }) => entry_id))
    record.entries = []
    hold?.settle({ input_tokens: 0, output_tokens: 0 }, 0)
    expect(closed).toHaveLength(1)
  })
})
