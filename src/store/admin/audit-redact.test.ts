/** Checks what the audit log stores of objects: never a secret, and never without bounds. */
import { describe, expect, test } from 'bun:test'
import { redacted, stateTexts } from './audit-redact.ts'

/** A generator with a seed, so that a failure can be repeated. */
function random(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state % below
  }
}

const BODY = 'Zq9xW3kPv7Lm2Rt8'
const SECRETS = [
  `sk-${BODY}`,
  `gha-${BODY}`,
  `ghs-${BODY}`,
  `ghl-${BODY}`,
  `whsec_${BODY}==`,
  `Bearer ${BODY}`,
  `AIza${BODY}${BODY}`,
  `xoxb-${BODY}`,
  `eyJ${BODY}.${BODY}.${BODY}`,
  `https://user:${BODY}@host.example/x`,
  `https://host.example/x?key=${BODY}`,
]
const SECRET_NAMES = [
  'secret',
  'apiKey',
  'api_key',
  'password',
  'key',
  'hash',
  'Authorization',
  'client_secret',
  'keys',
]

describe('an object in the audit log', () => {
  test.each([
    ['a.', 'a scheme that never ends'],
    ['a://', 'addresses without a query'],
    ['a://b@', 'addresses with names'],
    ['a://?#', 'queries and fragments'],
    ['eyJ-', 'the beginning of a web token'],
    ['eyJa.', 'the parts of a web token'],
    ['-----BEGIN A-----', 'the beginning of a key'],
    ['Bearer ', 'no token after its name'],
  ])('is searched in linear time: %s (%s)', (part) => {
    const time = (length: number) => {
      const text = part.repeat(Math.ceil(length / part.length)).slice(0, length)
      const times = Array.from({ length: 5 }, () => {
        const began = performance.now()
        redacted({ text })
        return performance.now() - began
      })
      return Math.min(...times)
    }
    // Eight times the text: linear is 8, quadratic is 64. Times below some milliseconds are noise.
    expect(time(32_768)).toBeLessThan(24 * time(4_096) + 20)
  })

  test('holds no secret, wherever in it there was one', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const below = random(seed)
      const make = (depth: number): unknown => {
        switch (below(depth > 5 ? 4 : 7)) {
          case 0:
            return below(1000)
          case 1:
            return `text ${SECRETS[below(SECRETS.length)]} and more`
          case 2:
            return SECRETS[below(SECRETS.length)]
          case 3:
            return { [SECRET_NAMES[below(SECRET_NAMES.length)] ?? '']: `${BODY}${below(9)}` }
          case 4:
            return Array.from({ length: below(4) }, () => make(depth + 1))
          case 5:
            return { [SECRETS[below(SECRETS.length)] ?? '']: make(depth + 1) }
          default:
            return { name: make(depth + 1), [SECRET_NAMES[below(SECRET_NAMES.length)] ?? '']: make(depth + 1) }
        }
      }
      const [before, after] = [make(0), make(0)]
      const texts = JSON.stringify([redacted(before), stateTexts(before, after)])
      expect([seed, texts.includes(BODY)]).toEqual([seed, false])
    }
  })

  test('keeps what is no secret', () => {
    const value = { name: 'a', labels: { team: 'b' }, models: ['x/*'], expires_at: null, disabled: false, amount: 0.5 }
    expect(redacted(value)).toEqual(value)
  })

  test('has the members that differ', () => {
    expect(stateTexts({ a: 1, b: [1], c: 'x' }, { a: 1, b: [2], d: 'y' })).toEqual({
      before: '{"b":[1],"c":"x"}',
      after: '{"b":[2],"d":"y"}',
    })
  })

  test('says that a secret has changed, without it', () => {
    expect(stateTexts({ api_key: 'one' }, { api_key: 'two' })).toEqual({
      before: '{"api_key":"[redacted]"}',
      after: '{"api_key":"[redacted]"}',
    })
  })

  test('is bounded in depth, length and number', () => {
    let deep: unknown = 'x'
    for (let n = 0; n < 1000; n++) deep = [deep]
    expect(JSON.stringify(redacted(deep)).length).toBeLessThan(100)
    expect(String(redacted('a'.repeat(100_000))).length).toBeLessThan(1_100)
    const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`n${n}`, 'a'.repeat(900)]))
    expect(stateTexts(undefined, wide).after?.length).toBeLessThan(33_000)
  })
})
