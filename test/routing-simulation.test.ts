/** The router in simulated time, against round robin: see bench/routing. Ratios, with fixed seeds. */
import { describe, expect, it } from 'bun:test'
import { simulate } from '../bench/routing/simulate.ts'
import { gatehouse, roundRobin } from '../bench/routing/subjects.ts'
import { createWorld, type Fault, type Outage } from '../bench/routing/world.ts'

const world = (targets: number, outages: Outage[]) => createWorld({ seconds: 60, targets, seed: 4, outages })
const outage = (fault: Fault, target = 1): Outage => ({ target, fault, from: 10, to: 40 })
const share = ({ errors, requests }: { errors: number; requests: number }) => errors / requests

describe('a minute of 50 requests a second', () => {
  it('has a p99 of at most half of that of round robin while one of five targets is slow', async () => {
    const given = { world: world(5, [outage('slow')]), per_second: 50, seed: 1 }
    const usual = await simulate({ ...given, create: roundRobin })
    const own = await simulate({ ...given, create: gatehouse({ strategy: 'least_latency', hedge: true }) })
    expect(usual.requests).toBeGreaterThan(2_500)
    expect(own.p99).toBeLessThan(usual.p99 / 2)
    expect(own.upstream / own.requests).toBeLessThan(1.06)
  })

  for (const strategy of ['priority', 'weighted', 'least_latency', 'least_busy', 'cheapest'] as const) {
    it(`has below 0.1 % errors with ${strategy} while one of three targets refuses connections`, async () => {
      const given = { world: world(3, [outage('refuses', 0)]), per_second: 50, seed: 1 }
      const usual = await simulate({ ...given, create: roundRobin })
      const own = await simulate({ ...given, create: gatehouse({ strategy }) })
      expect(share(usual)).toBeGreaterThan(0.1)
      expect(share(own)).toBeLessThan(0.001)
      expect(own.upstream / own.requests).toBeLessThan(1.05)
    })
  }

  it('has below 0.1 % errors while one of three targets is silent, flaps, or limits the calls', async () => {
    for (const fault of ['silent', 'flapping', 'limits'] as const) {
      const given = { world: world(3, [outage(fault, 0)]), per_second: 50, seed: 1 }
      const own = await simulate({ ...given, create: gatehouse({ strategy: 'least_latency' }) })
      expect(share(own)).toBeLessThan(0.001)
    }
  })

  it('has a p99 below 16 s in order of priority while the first target is slow', async () => {
    const slow = { world: world(3, [outage('slow', 0)]), per_second: 50, seed: 1 }
    expect((await simulate({ ...slow, create: gatehouse({ strategy: 'priority' }) })).p99).toBeLessThan(16_000)
  })

  it('is the same each time', async () => {
    const run = () =>
      simulate({ world: world(3, [outage('flapping')]), per_second: 50, seed: 2, create: gatehouse({ hedge: true }) })
    expect(await run()).toEqual(await run())
  })
})
