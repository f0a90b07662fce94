/** Gateways are killed while they record calls: the ledger adds up, and in durable mode no call of the provider is missing. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSpool } from '../src/calls/recording/spool.ts'
import { openStore } from '../src/store/open-store.ts'
import type { LedgerPlan } from './kit/ledger-process.ts'
import { startPostgres } from './kit/postgres.ts'
import { chunks, completion, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const TOKEN = 'sk-crash-suite-0000000000000000'
const ROUNDS = 6
const CLIENTS = 4
/** After which a gateway is killed. */
const ANSWERS = 20
/** Interrupted entries have this time. */
const FAR_FUTURE = 3_999_999_000_000
const EVERYTHING = { from: 0, to: 4_000_000_000 }

type Running = { url: string; kill(): Promise<void> }

let directory: string
let vendor: Vendor
let running: Running[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-crash-ledger-'))
  vendor = startVendor()
})
afterEach(async () => {
  await Promise.all(running.map((gateway) => gateway.kill()))
  running = []
  await vendor.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function start(plan: Omit<LedgerPlan, 'vendor_url' | 'token' | 'data_dir'>): Promise<Running> {
  const whole = { ...plan, vendor_url: vendor.url, token: TOKEN, data_dir: directory }
  const script = join(import.meta.dir, 'kit/ledger-process.ts')
  const child = Bun.spawn([process.execPath, script, JSON.stringify(whole)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const { value } = await child.stdout.getReader().read()
  const gateway = {
    url: new TextDecoder().decode(value).trim(),
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
  running.push(gateway)
  return gateway
}

/** Sends one call after another until the gateway is gone; returns how many ended with a complete response. */
async function client({ url }: Running, is_stream: boolean, onAnswer: () => void): Promise<number> {
  for (let answered = 0; ; answered++, onAnswer()) {
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'v/m', stream: is_stream, messages: [{ role: 'user', content: 'Hello' }] }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(text)
      if (is_stream && !text.includes('[DONE]')) return answered
    } catch {
      return answered
    }
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Kills gateways under load; returns what clients got, and what the ledger has afterwards. */
async function killed({ store_url, durable }: Pick<LedgerPlan, 'store_url' | 'durable'>) {
  vendor.otherwise((wire) => {
    const answer = wire.request.json().stream ? stream(chunks('Well ', 'thought.')) : whole(completion('Hello'))
    return answer(wire)
  })
  let answered = 0
  for (let round = 0; round < ROUNDS; round++) {
    const gateway = await start({ store_url, durable })
    // However fast the machine is: some calls have ended, and others are open.
    const worked = Promise.withResolvers<void>()
    let left = ANSWERS + round
    const onAnswer = () => {
      if (--left === 0) worked.resolve()
    }
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(gateway, index % 2 === 0, onAnswer))
    await worked.promise
    await pause((round * 37) % 150)
    await gateway.kill()
    for (const count of await Promise.all(clients)) answered += count
  }
  const store = await openStore({ url: store_url })
  try {
    while ((await store.ledger.interruptLapsed(FAR_FUTURE)) > 0); // as a later process does once their leases have lapsed
    const differences = await store.ledger.differences(EVERYTHING)
    const days = await store.ledger.vendorDays(EVERYTHING)
    const sum = (count: 'requests' | 'interrupted') => days.reduce((total, day) => total + day[count], 0)
    return { answered, differences, recorded: sum('requests'), interrupted: sum('interrupted') }
  } finally {
    await store.close()
  }
}

const STORES = {
  sqlite: async () => `sqlite:${join(directory, 'gatehouse.db')}`,
  postgres: async () => (await startPostgres()).createDatabase(),
}

describe.each(Object.entries(STORES))('a gateway on %s that is killed under load', (_, newStore) => {
  it('in durable mode has recorded each call that reached the provider', async () => {
    const { answered, differences, recorded, interrupted } = await killed({
      store_url: await newStore(),
      durable: true,
    })
    const asked = vendor.requests.length
    expect(differences).toEqual([])
    expect(answered).toBeGreaterThan(ROUNDS)
    // A call may be killed between its record and its request: it is listed as interrupted.
    expect(recorded).toBeGreaterThanOrEqual(asked)
    expect(recorded - interrupted).toBeLessThanOrEqual(asked)
    expect(interrupted).toBeLessThanOrEqual(ROUNDS * CLIENTS)
  }, 90_000)

  it('otherwise has lost at most the last moments of each process', async () => {
    const { answered, differences, recorded } = await killed({ store_url: await newStore(), durable: false })
    expect(differences).toEqual([])
    expect(recorded).toBeLessThanOrEqual(vendor.requests.length)
    expect(recorded).toBeGreaterThan(0)
    expect(answered).toBeGreaterThan(ROUNDS)
  }, 90_000)
})

describe('a process that is killed while its store does not answer', () => {
  /** It records entries, and is killed before anything was committed. */
  const VICTIM = `
    import { writeSync } from 'node:fs'
    import { systemClock as clock } from ${JSON.stringify(join(import.meta.dir, '../src/kit/clock.ts'))}
    import { createLog } from ${JSON.stringify(join(import.meta.dir, '../src/kit/log.ts'))}
    import { createJournal } from ${JSON.stringify(join(import.meta.dir, '../src/calls/recording/journal.ts'))}
    import { createLedger } from ${JSON.stringify(join(import.meta.dir, '../src/calls/recording/ledger.ts'))}
    import { entry } from ${JSON.stringify(join(import.meta.dir, 'kit/ledger.ts'))}
    const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
    const journal = createJournal({ directory: process.argv[1], now: clock.now, log })
    const store = { append: () => new Promise(() => {}) }
    const ledger = createLedger({ store, journal, clock, log })
    const record = async () => {
      const one = entry()
      await ledger.record([one])
      writeSync(1, one.entry_id + '\\n')
    }
    for (let count = 0; count < 20; count++) await record()
    setTimeout(async () => {
      await record() // during a commit that is never answered
      process.kill(process.pid, 'SIGKILL')
    }, 100)`

  it('has lost nothing that it had recorded', async () => {
    const spooled = join(directory, 'spool')
    const child = Bun.spawn([process.execPath, '-e', VICTIM, spooled], { stdout: 'pipe', stderr: 'inherit' })
    const recorded = (await new Response(child.stdout).text()).split('\n').slice(0, -1)
    expect(await child.exited).not.toBe(0)
    const found: string[] = []
    await createSpool({ directory: spooled, max_bytes: 1e9, now: () => Date.now() + 60_000 }).replay(
      async (entries) => {
        found.push(...entries.map(({ entry_id }) => entry_id))
      },
    )
    expect(recorded).toHaveLength(21)
    expect(found).toEqual(recorded)
  })
})

describe('a process that is killed while it spools', () => {
  const WRITER = `
    import { writeSync } from 'node:fs'
    import { createSpool } from ${JSON.stringify(join(import.meta.dir, '../src/calls/recording/spool.ts'))}
    import { entry } from ${JSON.stringify(join(import.meta.dir, 'kit/ledger.ts'))}
    const spool = createSpool({ directory: process.argv[1], max_bytes: 1e9, now: Date.now })
    for (;;) {
      const entries = Array.from({ length: 50 }, () => entry())
      await spool.append(entries)
      writeSync(1, entries.map(({ entry_id }) => entry_id + '\\n').join(''))
    }`

  it('loses no entry that was confirmed, also where the replay is cut off and repeated', async () => {
    const spooled = join(directory, 'spool')
    const confirmed: string[] = []
    for (let round = 0; round < 5; round++) {
      const child = Bun.spawn([process.execPath, '-e', WRITER, spooled], { stdout: 'pipe', stderr: 'inherit' })
      const out = new Response(child.stdout).text()
      await pause(250 + round * 20)
      child.kill('SIGKILL')
      await child.exited
      confirmed.push(...(await out).split('\n').slice(0, -1))
    }
    const store = await openStore({ url: 'sqlite::memory:' })
    const later = () => Date.now() + 60_000
    let writes = 0
    const replayer = () => createSpool({ directory: spooled, max_bytes: 1e9, now: later })
    const cut = replayer().replay(async (entries) => {
      if (++writes > 2) throw new Error('cut off')
      await store.ledger.append(entries)
    })
    await expect(cut).rejects.toThrow('cut off')
    const seen = new Set<string>()
    await replayer().replay(async (entries) => {
      for (const { entry_id } of entries) seen.add(entry_id)
      await store.ledger.append(entries)
    })
    const stored = new Set((await store.ledger.ofCall('req_a')).map(({ entry_id }) => entry_id))
    expect(confirmed.length).toBeGreaterThan(100)
    expect(confirmed.filter((entry_id) => !stored.has(entry_id))).toEqual([])
    expect(await store.ledger.differences(EVERYTHING)).toEqual([])
    await store.close()
  }, 120_000)
})
