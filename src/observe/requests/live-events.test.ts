import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import type { AuditRow } from '../../spec/audit.ts'
import { BATCH_MILLISECONDS, createLiveEvents, MAX_FOLLOWERS, MAX_OF_ACTOR, MAX_OF_PROJECTS } from './live-events.ts'
import { LIVE_EVENT_TYPES, type LiveEvent, MAX_WAITING } from './live-followers.ts'

const ALL = { types: LIVE_EVENT_TYPES, actor: 'owner' }

function setUp() {
  const clock = manualClock()
  const log = createLog({ clock, level: 'error', pretty: false, write() {} })
  const rows: AuditRow[] = []
  const asked: number[] = []
  const live = createLiveEvents({
    process_id: 'gw_own',
    audit: {
      async page({ limit }) {
        asked.push(limit)
        return { rows: rows.toReversed().slice(0, limit), next: undefined }
      },
    },
    clock,
    log,
  })
  const record = (count: number, project_id: string | null = null) => {
    for (let one = 0; one < count; one++) {
      const sequence = rows.length + 1
      const hashes = { previous_hash: 'p', hash: 'h' }
      const object = { object_type: 'token', object_id: 'tok_1', before: null, after: {} }
      rows.push({
        sequence,
        at_ms: 1,
        actor: 'a',
        action: 'x',
        project_id,
        address: null,
        request_id: null,
        ...object,
        ...hashes,
      })
    }
  }
  const alert = (key: string) =>
    live.alerted({ key, again_seconds: 60, type: 'breaker.open', message: `of ${key}`, data: {} })
  const ending = new AbortController()
  return { clock, live, record, asked, alert, ending, signal: ending.signal }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Reads one event after the other, of batches as they come. */
function reader(batches: AsyncGenerator<readonly LiveEvent[]>, clock: { advance(ms: number): void }) {
  const read: LiveEvent[] = []
  return async () => {
    while (read.length === 0) {
      const batch = batches.next()
      await settled()
      clock.advance(BATCH_MILLISECONDS)
      const { done, value } = await batch
      if (done) throw new Error('the events have ended')
      read.push(...value)
    }
    const { text, ...event } = read.shift() as LiveEvent
    return { ...event, data: JSON.parse(text) }
  }
}

describe('live events', () => {
  test('contain an alert once in its time, and again after it', async () => {
    const { live, alert, clock, signal } = setUp()
    const next = reader(live.follow(ALL, signal), clock)
    alert('one')
    alert('one')
    alert('two')
    expect([await next(), await next()]).toMatchObject([
      { type: 'alert', data: { event: 'breaker.open', message: 'of one' } },
      { data: { message: 'of two' } },
    ])
    clock.advance(60_000)
    alert('one')
    expect(await next()).toMatchObject({ data: { message: 'of one' } })
  })

  test('contain rows of the audit log from the first second on, without hashes, and not of earlier ones', async () => {
    const { live, record, clock, signal } = setUp()
    record(3)
    const next = reader(live.follow(ALL, signal), clock)
    await settled()
    record(2)
    clock.advance(1_000)
    const told = [await next(), await next()]
    expect(told.map(({ data }) => data)).toMatchObject([{ sequence: 4 }, { sequence: 5 }])
    expect(JSON.stringify(told)).not.toContain('hash')
  })

  test('say how many rows were missed where more were recorded than are read at once', async () => {
    const { live, record, clock, signal } = setUp()
    const next = reader(live.follow(ALL, signal), clock)
    await settled()
    record(203)
    clock.advance(1_000)
    await settled()
    const told: { type: string; data: object }[] = []
    for (let count = 0; count < 201; count++) told.push(await next())
    expect(told.at(0)).toMatchObject({ data: { sequence: 4 } })
    expect(told.at(-1)).toMatchObject({ type: 'dropped', data: { events: 3 } })
  })

  test('say that rows of the audit log are missing where more came than are read at once', async () => {
    const { live, record, clock, signal } = setUp()
    const after = { sequence: 0, audit: 1, process_id: 'gw_own', number: 0 }
    record(202)
    const next = reader(live.follow({ ...ALL, after }, signal), clock)
    expect(await next()).toMatchObject({ type: 'dropped', data: { events: null } })
    expect(await next()).toMatchObject({ type: 'audit', data: { sequence: 3 } })
  })

  test('send all rows of the audit log that came meanwhile', async () => {
    const { live, record, clock, signal } = setUp()
    record(201)
    const after = { sequence: 0, audit: 1, process_id: 'gw_own', number: 0 }
    const next = reader(live.follow({ ...ALL, after }, signal), clock)
    expect(await next()).toMatchObject({ type: 'audit', data: { sequence: 2 } })
  })

  test('do not read the audit log while nobody follows it', async () => {
    const { live, asked, clock, ending, signal } = setUp()
    live.follow({ actor: 'owner', types: ['alert'] }, signal)
    await settled()
    clock.advance(5_000)
    expect(asked).toEqual([])
    live.follow(ALL, signal)
    await settled()
    clock.advance(1_000)
    await settled()
    expect(asked).toEqual([1, 200])
    ending.abort()
    clock.advance(5_000)
    await settled()
    expect(asked).toEqual([1, 200])
    expect(clock.waiting()).toBe(0)
  })

  test('of one project leave out what belongs to others and to the installation', async () => {
    const { live, record, alert, clock, signal } = setUp()
    const next = reader(live.follow({ types: LIVE_EVENT_TYPES, actor: 'owner', project_id: 'proj_a' }, signal), clock)
    await settled()
    record(1, 'proj_b')
    record(1)
    record(1, 'proj_a')
    alert('one')
    clock.advance(1_000)
    expect(await next()).toMatchObject({ type: 'audit', data: { sequence: 3, project_id: 'proj_a' } })
  })

  test.each([
    [MAX_WAITING, 0],
    [MAX_WAITING + 2, 2],
  ])('of %i that wait for a slow reader drop %i, and say so', async (count, dropped) => {
    const { live, alert, clock, signal } = setUp()
    const next = reader(live.follow(ALL, signal), clock)
    for (let one = 0; one < count; one++) alert(`key ${one}`)
    for (let one = 0; one < MAX_WAITING; one++) expect((await next()).type).toBe('alert')
    alert('last')
    const after = dropped === 0 ? [] : [await next()]
    if (dropped > 0) after.push(await next())
    expect(after.map(({ type }) => type).toSorted()).toEqual(dropped === 0 ? [] : ['alert', 'dropped'])
    expect(after.find(({ type }) => type === 'dropped')?.data ?? { events: 0 }).toEqual({ events: dropped })
  })

  test(`are followed by ${MAX_FOLLOWERS} at once; one more is refused until one leaves`, async () => {
    const { live, signal } = setUp()
    const first = new AbortController()
    live.follow({ ...ALL, actor: 'first' }, first.signal)
    for (let count = 1; count < MAX_FOLLOWERS; count++) live.follow({ ...ALL, actor: `actor ${count}` }, signal)
    expect(() => live.follow(ALL, signal)).toThrow(`At most ${MAX_FOLLOWERS} streams`)
    first.abort()
    expect(() => live.follow(ALL, signal)).not.toThrow()
  })

  test(`are followed by one administrator in ${MAX_OF_ACTOR} streams, and by another besides`, () => {
    const { live, signal } = setUp()
    for (let count = 0; count < MAX_OF_ACTOR; count++) live.follow(ALL, signal)
    expect(() => live.follow(ALL, signal)).toThrow(`At most ${MAX_OF_ACTOR} of them by one administrator`)
    expect(() => live.follow({ ...ALL, actor: 'another' }, signal)).not.toThrow()
  })

  test(`are followed by administrators of projects in ${MAX_OF_PROJECTS} streams, and by an owner besides`, () => {
    const { live, signal } = setUp()
    const ofProject = (number: number) => ({ ...ALL, project_id: 'p', actor: `actor ${number}` })
    for (let count = 0; count < MAX_OF_PROJECTS; count++) live.follow(ofProject(count), signal)
    expect(() => live.follow(ofProject(99), signal)).toThrow(`At most ${MAX_OF_PROJECTS} of them`)
    expect(() => live.follow(ALL, signal)).not.toThrow()
  })

  test('end for all when the gateway stops', async () => {
    const { live, signal } = setUp()
    const events = live.follow(ALL, signal)
    const ended = events.next()
    live.close()
    expect((await ended).done).toBe(true)
  })
})
