/**
 * `npm run bench:held -- [--streams N] [--translated]`: the resident memory of a held stream, beside that of the bare Bun proxy.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { everythingOn, TOKEN } from './everything-on.ts'
import type { Target } from './http-client.ts'
import { endEverything, endGroup, type Group, residentBytes } from './processes.ts'
import { bareProxy, bodyFor, freePort, logTail, startVendor, VENDOR_KEY } from './subjects.ts'

const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: {
    streams: { type: 'string', default: '1000' },
    translated: { type: 'boolean', default: false },
  },
})
const streams = Number(options.streams)
// The runtime queues the requests beyond its limit, 256 by default: fewer streams would be open than are counted.
if (Number(process.env.BUN_CONFIG_MAX_HTTP_REQUESTS ?? 256) < streams) {
  process.stderr.write('Set BUN_CONFIG_MAX_HTTP_REQUESTS to more than the streams, as `npm run bench:held` does.\n')
  process.exit(1)
}
const OPEN_AT_ONCE = 50
/** Streams that are opened and left before the measurement, so that what the runtime takes for its first load is there. */
const WARM_STREAMS = 100

type Held = { leave(): Promise<void> }

/** Opens streams and waits for the first bytes of each. */
async function hold({ url, headers, body }: Target, count: number): Promise<Held> {
  const control = new AbortController()
  const readers: ReadableStreamDefaultReader<Uint8Array>[] = []
  for (let open = 0; open < count; open += OPEN_AT_ONCE) {
    const opened = Array.from({ length: Math.min(OPEN_AT_ONCE, count - open) }, async () => {
      const response = await fetch(url, { method: 'POST', headers, body, signal: control.signal, timeout: false })
      if (response.status !== 200 || !response.body) throw new Error(`${response.status}: ${await response.text()}`)
      const reader = response.body.getReader()
      await reader.read()
      readers.push(reader)
    })
    await Promise.all(opened)
  }
  return {
    async leave() {
      control.abort()
      await Promise.allSettled(readers.map((reader) => reader.cancel()))
      await Bun.sleep(500)
    },
  }
}

async function ready({ url, headers, body }: Target, group: Group): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    try {
      const response = await fetch(url, { method: 'POST', headers, body })
      await response.body?.cancel()
      if (response.status === 200) return
    } catch {}
    await Bun.sleep(50)
  }
  throw new Error(`No answer with 200. ${logTail(group)}`)
}

async function measure(name: string, target: Target, group: Group): Promise<void> {
  await ready(target, group)
  await (await hold(target, WARM_STREAMS)).leave()
  await Bun.sleep(2000)
  const before = residentBytes(group)
  const held = await hold(target, streams)
  await Bun.sleep(2000)
  const bytes = (residentBytes(group) - before) / streams
  process.stdout.write(`${name}: ${(bytes / 1024).toFixed(1)} KB a held stream (${streams})\n`)
  await held.leave()
  await endGroup(group)
}

const dir = mkdtempSync(join(tmpdir(), 'gatehouse-held-'))
process.on('exit', () => {
  endEverything()
  rmSync(dir, { recursive: true, force: true })
})
const { port: vendorPort } = await startVendor(dir)
const target = (port: number, model: string, token: string): Target => ({
  url: `http://127.0.0.1:${port}/v1/chat/completions`,
  headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
  body: bodyFor(model, true),
})
const barePort = freePort()
await measure(
  'bare Bun proxy',
  target(barePort, 'slow', VENDOR_KEY),
  bareProxy({ port: barePort, vendorPort, log: join(dir, 'bare.log') }),
)
const quirks = options.translated ? ', quirks: { passthrough: false }' : ''
const { port, start } = everythingOn({
  home: join(dir, 'home'),
  vendorPort,
  binary: join(import.meta.dir, '../bin/gatehouse'),
  server: '{ workers: 1, drain_seconds: 0 }',
  slow: true,
  quirks,
})
await measure('Gatehouse', target(port, 'bench/slow', TOKEN), start())
process.exit(0)
