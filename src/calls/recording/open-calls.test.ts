import { afterEach, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { entry } from '../../../test/kit/ledger.ts'
import { createLog } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { openStore } from '../../store/open-store.ts'
import type { Store } from '../../store/store.ts'
import { createOpenCalls } from './open-calls.ts'

const stores: Store[] = []
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setTimeout(resolve, 1))
}

async function setUp() {
  const store = await openStore({ url: 'sqlite::memory:' })
  stores.push(store)
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const commits: number[] = []
  const fault = { isAnswerLost: false }
  const closed: string[] = []
  const ledger = {
    ...store.ledger,
    open: async (calls: Parameters<typeof store.ledger.open>[0], lease: { process: string; until_ms: number }) => {
      commits.push(calls.length)
      await store.ledger.open(calls, lease)
      if (fault.isAnswerLost) throw new GatewayError('storage_unavailable', 'The store is away.')
    },
  }
  let processes = 0
  const create = () =>
    createOpenCalls({ store: ledger, process_id: `p${processes++}`, close: (id) => closed.push(id), clock, log })
  const kinds = async () => (await store.ledger.ofCall('req_a')).map(({ kind }) => kind)
  async function advance(ms: number) {
    for (let at = 0; at < ms; at += 10_000) {
      clock.advance(10_000)
      await settle()
    }
  }
  return { create, commits, closed, fault, kinds, advance }
}

const call = (entry_id: string) => ({ entry_id, entry: entry({ entry_id }) })

describe('open calls', () => {
  it('that arrive during a commit share the next one', async () => {
    const { create, commits } = await setUp()
    const openCalls = create()
    const first = openCalls.open(call('a'))
    await Promise.resolve()
    await Promise.all([first, ...['b', 'c', 'd'].map((id) => openCalls.open(call(id)))])
    expect(commits).toEqual([1, 3])
  })

  it('that the store may have, although it has failed, are closed', async () => {
    const { create, fault, closed } = await setUp()
    const openCalls = create()
    await openCalls.open(call('a'))
    fault.isAnswerLost = true
    await expect(openCalls.open(call('b'))).rejects.toMatchObject({ code: 'storage_unavailable' })
    expect(closed).toEqual(['b'])
  })

  it('of a process that has ended are recorded by another one, and those of a running one are not', async () => {
    const { create, kinds, advance } = await setUp()
    const [dead, running] = [create(), create()]
    await dead.open(call('a'))
    await running.open(call('b'))
    running.start()
    await advance(50_000)
    expect(await kinds()).toEqual([])
    await advance(300_000)
    expect(await kinds()).toEqual(['interrupted'])
    await running.stop()
  })
})
