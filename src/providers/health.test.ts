import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import { startHealthMonitor } from './health.ts'

const down = new GatewayError('upstream_unreachable', 'No connection.')
const answered = (upstream_status: number) => new GatewayError('upstream_auth', 'Refused.', { upstream_status })

/** A monitor with these settings; `result` is what the next probes show. */
function watched(config: Parameters<typeof startHealthMonitor>[0]['config'] = {}) {
  const clock = manualClock()
  let logged = ''
  const log = createLog({
    clock,
    level: 'info',
    pretty: false,
    write: (text) => {
      logged += text
    },
  })
  const seen = { probes: 0, recovered: 0, aborted: 0 }
  let result: Error | 'ok' | 'hangs' = 'ok'
  const monitor = startHealthMonitor({
    provider: 'local',
    config,
    clock,
    log,
    onRecovered: () => void seen.recovered++,
    probe(signal) {
      seen.probes++
      if (result === 'hangs') {
        signal.addEventListener('abort', () => void seen.aborted++)
        return new Promise(() => {})
      }
      return result === 'ok' ? Promise.resolve() : Promise.reject(result)
    },
  })
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve()
  }
  const advance = async (seconds: number) => {
    await settle()
    clock.advance(seconds * 1000)
    await settle()
  }
  const events = () => {
    log.flush()
    return logged.split('\n').flatMap((line) => (line ? [(JSON.parse(line) as { event: string }).event] : []))
  }
  return {
    monitor,
    seen,
    clock,
    advance,
    settle,
    events,
    is: () => monitor.health.is_unhealthy,
    now(next: typeof result) {
      result = next
    },
    logged: () => logged,
  }
}

describe('a provider that is probed', () => {
  it('is probed at once, and at the interval after the end of each probe', async () => {
    const { seen, advance, settle, clock } = watched({ interval_seconds: 5 })
    await settle()
    expect(seen.probes).toBe(1)
    await advance(4.9)
    expect(seen.probes).toBe(1)
    await advance(0.1)
    expect(seen.probes).toBe(2)
    await settle()
    expect(clock.waiting()).toBe(1)
  })

  it('is unhealthy after two failures in a row, and healthy after one success; each change is logged once', async () => {
    const { is, now, advance, events, seen, logged } = watched()
    now(down)
    await advance(10)
    expect(is()).toBe(false)
    await advance(10)
    expect(is()).toBe(true)
    await advance(10)
    await advance(10)
    expect(events()).toEqual(['provider unhealthy'])
    expect(logged()).toContain('"provider":"local","why":"No connection."')
    expect(seen.recovered).toBe(0)
    now('ok')
    await advance(10)
    expect(is()).toBe(false)
    await advance(10)
    expect(events()).toEqual(['provider unhealthy', 'provider healthy'])
    expect(seen.recovered).toBe(1)
  })

  it('stays as it is while it flaps, where several probes in a row are needed', async () => {
    const { is, now, advance, events } = watched({ unhealthy_after: 3, healthy_after: 2 })
    for (let i = 0; i < 10; i++) {
      now(i % 3 === 2 ? 'ok' : down)
      await advance(10)
      expect(is()).toBe(false)
    }
    now(down)
    for (let i = 0; i < 4; i++) await advance(10)
    expect(is()).toBe(true)
    for (let i = 0; i < 10; i++) {
      now(i % 2 ? 'ok' : down)
      await advance(10)
      expect(is()).toBe(true)
    }
    now('ok')
    await advance(10)
    await advance(10)
    expect(is()).toBe(false)
    expect(events()).toEqual(['provider unhealthy', 'provider healthy'])
  })

  it('fails where it does not answer within the time limit, and is never probed twice at a time', async () => {
    const { is, now, advance, seen, logged, events } = watched({ timeout_seconds: 3, unhealthy_after: 1 })
    now('hangs')
    await advance(10)
    expect(seen).toMatchObject({ probes: 2, aborted: 0 })
    await advance(2.9)
    expect(is()).toBe(false)
    await advance(0.1)
    expect(is()).toBe(true)
    expect(seen).toMatchObject({ probes: 2, aborted: 1 })
    events()
    expect(logged()).toContain('no answer within 3 s')
    await advance(9.9)
    expect(seen.probes).toBe(2)
    await advance(0.1)
    expect(seen.probes).toBe(3)
  })

  it.each([401, 403, 404, 429, 499])('is healthy where it answers %d: it is there', async (status) => {
    const { is, now, advance } = watched({ unhealthy_after: 1 })
    now(answered(status))
    await advance(10)
    expect(is()).toBe(false)
  })

  it.each([302, 399, 500, 503])('is unhealthy where it answers %d', async (status) => {
    const { is, now, advance } = watched({ unhealthy_after: 1 })
    now(answered(status))
    await advance(10)
    expect(is()).toBe(true)
  })

  it('says when the next probe is', async () => {
    const { monitor, clock, settle } = watched({ interval_seconds: 7 })
    await settle()
    expect(monitor.health.next_probe_at).toBe(clock.steady() + 7000)
  })

  it('is not probed after the stop, and nothing is known of it; an open probe is aborted', async () => {
    const { monitor, is, now, advance, seen, clock, settle, events } = watched({ unhealthy_after: 1 })
    now(down)
    await advance(10)
    expect(is()).toBe(true)
    now('hangs')
    await advance(10)
    monitor.stop()
    await settle()
    expect(seen).toMatchObject({ probes: 3, aborted: 1 })
    expect(is()).toBe(false)
    expect(events()).toEqual(['provider unhealthy'])
    expect(clock.waiting()).toBe(0)
    await advance(100)
    expect(seen.probes).toBe(3)
  })
})
