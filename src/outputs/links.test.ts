import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLinks } from './links.ts'

const TO = { base_url: 'https://gateway.example', path: '/v1/videos', task_id: 'task_abc', index: 0 }

function linksOf({ secret = 'a secret', hours = 24, clock = manualClock() } = {}) {
  return { ...createLinks({ clock, secret, link_hours: () => hours }), clock }
}

/** The query of a link, as the HTTP route passes it. */
function readLink(link: string) {
  const url = new URL(link)
  const [, task_id = ''] = /^\/v1\/videos\/([^/]+)\/content$/.exec(url.pathname) ?? []
  const value = (name: string) => url.searchParams.get(name) ?? ''
  return { task_id, index: Number(value('index')), expires: value('expires'), signature: value('signature') }
}

describe('a link', () => {
  test('is valid for its task and its file', () => {
    const { link, verify } = linksOf()
    expect(link(TO)).toMatch(
      /^https:\/\/gateway\.example\/v1\/videos\/task_abc\/content\?expires=\d+&signature=[\w-]{43}$/,
    )
    expect(link({ ...TO, index: 2 })).toContain('?index=2&expires=')
    for (const index of [0, 1, 2]) expect(verify(readLink(link({ ...TO, index })))).toBe('valid')
  })

  test('is forged when any part of it was changed', () => {
    const { link, verify, clock } = linksOf()
    const good = readLink(link(TO))
    const other = readLink(linksOf({ secret: 'another', clock }).link(TO))
    const changed = [
      { ...good, task_id: 'task_abd' },
      { ...good, index: 1 },
      { ...good, expires: String(Number(good.expires) + 1) },
      { ...good, expires: `0${good.expires}` },
      { ...good, expires: `${good.expires}.0` },
      { ...good, expires: '' },
      { ...good, expires: '9'.repeat(400) },
      { ...good, signature: '' },
      { ...good, signature: good.signature.slice(1) },
      { ...good, signature: `${good.signature}=` },
      { ...good, signature: 'é'.repeat(43) },
      { ...good, signature: other.signature },
    ]
    for (const query of changed) expect([query, verify(query)]).toEqual([query, 'forged'])
  })

  test('is valid for its hours, and not a second longer than it states', () => {
    const { link, verify, clock } = linksOf()
    const start = clock.now()
    const query = readLink(link(TO))
    clock.advance(24 * 3600 * 1000)
    expect(Number(query.expires) * 1000).toBeGreaterThanOrEqual(clock.now())
    clock.advance(Number(query.expires) * 1000 - clock.now() - 1000)
    expect(verify(query)).toBe('valid')
    clock.advance(1000)
    expect(verify(query)).toBe('expired')
    expect(clock.now() - start).toBeLessThanOrEqual((24 * 3600 + 300) * 1000)
    // A changed expiry of an old link is forged, not expired.
    expect(verify({ ...query, expires: String(Number(query.expires) + 3600) })).toBe('forged')
  })

  test('is equal within five minutes, so that caches and polling clients recognize it', () => {
    const { link, clock } = linksOf()
    clock.advance(1000)
    const first = link(TO)
    clock.advance(299_000)
    expect(link(TO)).toBe(first)
    clock.advance(1000)
    expect(link(TO)).not.toBe(first)
  })

  test('with a short lifetime stays short', () => {
    const { link, clock } = linksOf({ hours: 1 / 60 })
    clock.advance(1000)
    const life = Number(readLink(link(TO)).expires) - Math.floor(clock.now() / 1000)
    expect(life).toBeGreaterThanOrEqual(60)
    expect(life).toBeLessThanOrEqual(65)
  })
})
