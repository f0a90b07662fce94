/** Checks what a durable ledger has stored of open calls if the gateway is killed at that moment. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_LEDGER } from '../src/config/config.ts'
import { createGateway } from '../src/gateway/gateway.ts'
import { createLog } from '../src/kit/log.ts'
import type { LedgerEntry } from '../src/store/ledger/ledger-entry.ts'
import { manualClock } from './kit/clock.ts'
import { configOf } from './kit/gateway.ts'
import { completion, failure, startVendor, type Vendor, whole } from './kit/vendor.ts'

const NANO = 1_000_000_000
const MAX_TOKENS = 10
const TOO_LONG = failure(400, { message: 'maximum context length is 10 tokens', code: 'context_length_exceeded' })

let directory: string
let vendor: Vendor
const closing: (() => Promise<unknown>)[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-durable-'))
  vendor = startVendor()
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await vendor.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** What would be recorded of open calls if the process ended now. */
function openEntries(): LedgerEntry[] {
  const database = new Database(join(directory, 'gatehouse.db'), { readonly: true })
  try {
    return database
      .query<{ entry: string }, []>('select entry from open_calls')
      .all()
      .map(({ entry }) => JSON.parse(entry) as LedgerEntry)
  } finally {
    database.close()
  }
}

async function start(crashHook: (point: string) => void = () => {}) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
  const gateway = await createGateway({
    config: configOf({
      data_dir: directory,
      ledger: { ...DEFAULT_LEDGER, durable: true },
      providers: { v: { base_url: vendor.url } },
      models: {
        'v/cheap': { prices: { input: 0, output: 1_000_000 }, fallbacks: { context_length: ['v/dear'] } },
        'v/dear': { prices: { input: 0, output: 5_000_000 } },
        'v/video': {
          families: ['video-generation'],
          targets: [{ provider: 'sandbox', model: 'text-to-video' }],
          prices: { video: 3 },
        },
      },
    }),
    environment: {},
    store_url: `sqlite:${join(directory, 'gatehouse.db')}`,
    version: '0.0.0-test',
    crashHook,
    clock,
    log,
  })
  closing.push(() => gateway.close({ deadline_ms: 0 }))
  async function post(path: string, json: object): Promise<Response> {
    const request = new Request(`http://gatehouse.test${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.first_token?.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(json),
    })
    let response: Response | undefined
    void gateway.fetch(request).then((answer) => {
      response = answer
    })
    while (!response) {
      clock.advance(0) // the commit of an entry waits for others that are recorded at once
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    return response
  }
  return { post }
}

describe('a durable ledger', () => {
  it('has the amount of a dearer fallback before that is called', async () => {
    const seen: [string | undefined, number][] = []
    vendor.otherwise(async (wire) => {
      const { model } = wire.request.json() as { model: string }
      for (const { model, amount } of openEntries()) seen.push([model, Math.round((amount ?? 0) / NANO)])
      return (model === 'dear' ? whole(completion('Hello')) : TOO_LONG)(wire)
    })
    const { post } = await start()
    const response = await post('/v1/chat/completions', {
      model: 'v/cheap',
      max_tokens: MAX_TOKENS,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    expect(response.status).toBe(200)
    expect(seen.at(0)).toEqual(['v/cheap', MAX_TOKENS])
    expect(seen.at(-1)).toEqual(['v/dear', 5 * MAX_TOKENS])
    expect(openEntries()).toEqual([])
  })

  it('has no open call of the submission of a task, which would be charged twice', async () => {
    const open: Record<string, number> = {}
    const { post } = await start((point) => {
      open[point] = openEntries().length
    })
    const response = await post('/v1/video/generations', { model: 'v/video', prompt: 'A boat' })
    expect(response.status).toBe(200)
    expect(open).toMatchObject({ 'submit: before the row': 0, 'submit: after the row': 0 })
  })
})
