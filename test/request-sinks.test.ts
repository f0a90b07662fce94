/** The request log and its sinks never hold up a call: neither slow ones, nor dead ones, nor a full disk, nor a slow scrape. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { OWNER, startAdminGateway } from './kit/admin.ts'
import { readScrape } from './kit/metrics.ts'
import type { RecordingPlan } from './kit/recording-process.ts'
import { openPort } from './kit/served.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const QUESTION = { model: 'sandbox/moderation', input: 'hi' }
const CALLS = 300
const MAX_QUEUED = 100

/** A receiver on loopback; `answer` has the body of each request. */
function startReceiver(answer: (text: string) => Response | Promise<Response>): string {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: async (request) => answer(await request.text()),
  })
  closing.push(() => server.stop(true))
  return `http://127.0.0.1:${server.port}/`
}

type Sink = Config['request_log']['sinks'][number]

const SINKS: Record<string, () => Sink> = {
  'a receiver that never answers': () => ({ http: { url: startReceiver(() => new Promise(() => {})) } }),
  'a receiver that is away': () => ({ http: { url: 'http://127.0.0.1:9/none' } }),
  'a receiver that is broken': () => ({ http: { url: startReceiver(() => new Response('', { status: 500 })) } }),
  'a full disk': () => ({ file: { path: '/dev/full' } }),
}

describe('a sink', () => {
  it.each(Object.entries(SINKS))(
    'that is %s delays no call, holds a bounded number of rows, and shows what it drops',
    async (_, newSink) => {
      const sink = { ...newSink(), max_queued: MAX_QUEUED }
      const gateway = await startAdminGateway({ request_log: { ...DEFAULT_REQUEST_LOG, sinks: [sink] } })
      // After its receiver: a stop waits for a write by the clock, which is not advanced any more.
      closing.unshift(() => gateway[Symbol.asyncDispose]())
      for (let call = 0; call < CALLS; call++) {
        const response = await gateway.call('/v1/moderations', { json: QUESTION })
        expect(response.status).toBe(200)
        await response.arrayBuffer()
        if (call === MAX_QUEUED / 2) gateway.clock.advance(1_000) // the first write begins
      }
      const response = await gateway.call('/metrics', { headers: { authorization: `Bearer ${OWNER}` } })
      const metrics = readScrape(await response.text())
      const own = { sink: 'request_log.sinks[0]' }
      expect(metrics.sum('gatehouse_request_log_queue_rows', own)).toBe(MAX_QUEUED)
      expect(metrics.sum('gatehouse_request_log_rows_total', { ...own, result: 'dropped' })).toBe(CALLS - MAX_QUEUED)
      expect(metrics.sum('gatehouse_request_log_rows_total', { sink: 'store', result: 'dropped' })).toBe(0)
    },
  )

  it('has every row once that a killed gateway had sent, and no row that is merged with another', async () => {
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-sinks-kill-'))
    closing.push(() => rmSync(data_dir, { recursive: true, force: true }))
    const received: string[] = []
    const url = startReceiver((text) => {
      received.push(...text.split('\n').filter((line) => line !== ''))
      return new Response()
    })
    const often = { flush_seconds: 0.01, max_batch: 5 }
    const sinks = [
      { file: { path: 'requests.ndjson' }, ...often },
      { http: { url }, ...often },
    ]
    const token = 'sk-crash-suite-0000000000000000'
    const plan = { data_dir, token, store_url: `sqlite:${join(data_dir, 'gatehouse.db')}`, request_log: { sinks } }
    const idsOf = (lines: readonly string[]) =>
      lines.map((line) => (JSON.parse(line) as { request_id: string }).request_id)
    const inFile = () => readFileSync(join(data_dir, 'requests.ndjson'), 'utf8').split('\n').slice(0, -1)
    let sent = 0
    let before: string[] = []
    const kills = 3
    for (let round = 0; round < kills; round++) {
      const { url: base, kill } = await startRecording(plan)
      const target = received.length
      for (let more = 5 + 7 * round; more > 0; ) {
        if (received.length > target) more--
        const response = await fetch(`${base}/v1/moderations`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            'x-request-id': `call-${sent++}`,
          },
          body: JSON.stringify(QUESTION),
        })
        expect(response.status).toBe(200)
        await response.arrayBuffer()
      }
      await kill()
      const whole = inFile().filter(isWhole)
      expect(inFile().length - whole.length).toBeLessThanOrEqual(round + 1)
      const ids = idsOf(whole)
      expect(before.filter((id) => !ids.includes(id))).toEqual([])
      before = ids
    }
    expect(new Set(before).size).toBe(before.length)
    expect(before.length).toBeGreaterThan(kills)
    const ids = idsOf(received)
    expect([new Set(ids).size, ids.length > kills]).toEqual([ids.length, true])
  })
})

function isWhole(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}

async function startRecording(plan: RecordingPlan) {
  const script = join(import.meta.dir, 'kit/recording-process.ts')
  const child = Bun.spawn([process.execPath, script, JSON.stringify(plan)], { stdout: 'pipe', stderr: 'inherit' })
  const kill = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  closing.push(kill)
  const { value } = await child.stdout.getReader().read()
  return { url: new TextDecoder().decode(value).trim(), kill }
}

describe('scrapes', () => {
  it('that are never read, and many at once, hold up no call', async () => {
    const port = await openPort()
    closing.push(() => port.close())
    const { hostname, port: number } = new URL(port.url)
    const sockets = Array.from({ length: 20 }, () => connect(Number(number), hostname))
    closing.push(() => {
      for (const socket of sockets) socket.destroy()
    })
    for (const socket of sockets) {
      socket.pause()
      // Several on one connection: more than fits in its buffers, were it answered at once.
      socket.write('GET /metrics HTTP/1.1\r\nhost: gatehouse\r\n\r\n')
    }
    const scrapes = Promise.all(
      Array.from({ length: 50 }, async () => (await fetch(new URL('/metrics', port.url))).text()),
    )
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${port.token}` }
    const response = await fetch(`${port.url}/moderations`, { method: 'POST', headers, body: JSON.stringify(QUESTION) })
    expect(response.status).toBe(200)
    for (const text of await scrapes) expect(text).toContain('gatehouse_open_requests')
  })
})
