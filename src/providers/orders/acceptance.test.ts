import { describe, expect, test } from 'bun:test'
import { manualPage } from '../../../test/kit/manual.ts'
import { DEFAULT_TIMEOUTS } from '../../config/config.ts'
import { PROVIDER_KINDS } from '../../config/schema/provider-kinds.ts'
import { systemClock } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { createProvider } from '../registry.ts'
import { createTransport } from '../upstream/transport.ts'
import { acceptanceAfterFailure, acceptanceOf, NOT_ACCEPTED, ORDER_KINDS, type OrderKindRule } from './acceptance.ts'

const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })
const transport = createTransport({ clock: systemClock, log })

const providerOf = (kind: (typeof PROVIDER_KINDS)[number], options: Record<string, unknown> = {}) =>
  createProvider({
    id: 'vendor',
    config: { kind, key: 'a-key', base_url: 'http://127.0.0.1:9/v1', options },
    timeouts: DEFAULT_TIMEOUTS,
    transport,
    clock: systemClock,
    log,
    environment: { GOOGLE_VERTEX_PROJECT: 'p', GOOGLE_VERTEX_LOCATION: 'us-central1', AWS_REGION: 'us-east-1' },
    manual: async () => [],
  })

const KINDS = Object.entries(ORDER_KINDS) as [keyof typeof ORDER_KINDS, OrderKindRule][]

describe('the rule for responses to orders', () => {
  test('covers every kind that accepts orders, and no other', () => {
    const ordering = PROVIDER_KINDS.filter((kind) => {
      const { video, threeD, images } = providerOf(kind)
      return video || threeD || images
    })
    expect(KINDS.map(([kind]) => kind as string).sort()).toEqual([...ordering].sort())
  })

  test.each(KINDS)('for %s classifies no other response as "not accepted"', (kind, { exceptions = [] }) => {
    for (let status = 100; status < 600; status++) {
      const hasException = exceptions.some((one) => one.codes === undefined && one.status?.includes(status))
      if (hasException) continue
      for (const payload of [undefined, null, 'text', [], {}, { code: 0 }, { error: { code: 'other' } }]) {
        const expected = NOT_ACCEPTED.includes(status) ? 'not accepted' : 'in doubt'
        expect(acceptanceOf({ kind, status, payload })).toBe(expected)
      }
    }
  })

  const exceptions = KINDS.flatMap(([kind, { exceptions: all = [] }]) => all.map((one) => [kind, one] as const))
  test.each(exceptions)('has a source for each exception of %s, which applies to its responses only', (kind, one) => {
    expect(one.source).toMatch(/^(https:\/\/|manual: |from memory$)/)
    const other = one.acceptance === 'in doubt' ? 422 : 200
    for (const status of one.status ?? [other, 500]) {
      for (const code of one.codes ?? ['any']) {
        for (const payload of [{ code }, { error: { code } }, { base_resp: { status_code: code } }]) {
          expect(acceptanceOf({ kind, status, payload })).toBe(one.acceptance)
        }
        if (one.codes) expect(acceptanceOf({ kind: 'luma', status: other, payload: { code } })).not.toBe(one.acceptance)
      }
      if (one.is_json) expect(acceptanceOf({ kind, status, payload: undefined })).toBe('in doubt')
    }
  })

  test('treats a numeric code like its text', () => {
    expect(acceptanceOf({ kind: 'kling', status: 200, payload: { code: 1303 } })).toBe('not accepted')
    expect(acceptanceOf({ kind: 'kling', status: 200, payload: { code: 5001 } })).toBe('in doubt')
    expect(acceptanceOf({ kind: 'kling', status: 500, payload: { code: 1303 } })).toBe('in doubt')
  })

  test.each([
    ['ECONNREFUSED', 'not accepted'],
    ['ENOTFOUND', 'not accepted'],
    ['CERT_HAS_EXPIRED', 'not accepted'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'not accepted'],
    ['EPROTO', 'in doubt'],
    ['ECONNRESET', 'in doubt'],
    ['ETIMEDOUT', 'in doubt'],
    ['EPIPE', 'in doubt'],
    ['unknown', 'in doubt'],
  ] as const)('a connection that ended with %s leaves the order %s', (code, acceptance) => {
    expect(acceptanceAfterFailure(code)).toBe(acceptance)
  })
})

describe('a kind whose orders are repeated', () => {
  test.each(KINDS)('%s either states how an order in doubt is looked up, or why it is not', (_, rule) => {
    expect([rule.looked_up_by, rule.not_looked_up].filter(Boolean)).toHaveLength(1)
  })

  test.each(KINDS)('%s behaves as its row declares', (kind, { sent_again, looked_up_by }) => {
    for (const options of kind === 'chatcompat-video' ? [{}, { idempotent: true }] : [{}]) {
      const { video, threeD } = providerOf(kind, options)
      for (const orders of [video, threeD]) {
        if (!orders) continue
        const isSafe = sent_again?.startsWith('always') || (sent_again !== undefined && 'idempotent' in options)
        expect(orders.resubmit).toBe(isSafe ? 'safe' : 'unsafe')
        expect(orders.orderList !== undefined).toBe(looked_up_by !== undefined && !isSafe)
      }
    }
  })
})

// The rows themselves are generated: test/reference.test.ts compares them.
test('the manual contains the rule and names every kind', () => {
  expect(manualPage('video-vendors.md')).toContain(`${NOT_ACCEPTED.slice(0, -1).join(', ')} and ${NOT_ACCEPTED.at(-1)}`)
  const lines = manualPage('order-responses.md').match(/^- (?:`[\w-]+`(?:, )?)+: .+$/gm) ?? []
  const named = lines.flatMap((line) => [...line.slice(0, line.indexOf(':')).matchAll(/`([\w-]+)`/g)])
  expect(named.map(([, kind]) => kind).sort()).toEqual(KINDS.map(([kind]) => kind as string).sort())
})
