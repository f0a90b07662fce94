/**
 * The memory of a gateway in a separate process grows by less than a batch has: its file is received, checked, begun, and its
 * results written in pieces. `GATEHOUSE_BATCH_MEGABYTES` is the size of the batch; 200 is the largest.
 */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BatchPlan } from './kit/batch-gateway.ts'
import { firstLine, TOKEN } from './kit/gateway-process.ts'

const MEGABYTES = Number(process.env.GATEHOUSE_BATCH_MEGABYTES ?? 200)
/** 200 MB are fewer than the 50,000 lines that a batch may have. */
const LINE_BYTES = 4_200
/** Much less than the batch: it is never in memory as a whole. Measured: 11 to 31 MB for 200. Calls of lines are not measured: they allocate more. */
const MOST_GROWTH = 40
/** What the runtime allocates for calls, and keeps, is no part of the batch. */
const WARM_LINES = 1_500
/** So many are executed before it is cancelled: the others end without a call. */
const EXECUTED = 100

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-batch-memory-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const ANSWER = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'chat',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(1_000) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1_000, completion_tokens: 250, total_tokens: 1_250 },
}

const text = 'y'.repeat(LINE_BYTES - 170)
const lineOf = (at: number) =>
  `${JSON.stringify({
    custom_id: `line-${at}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'acme/chat', messages: [{ role: 'user', content: `${at} ${text}` }] },
  })}\n`

/** A form whose file is made while it is sent. */
function formOf(lines: number): { headers: Record<string, string>; body: ReadableStream<Uint8Array> } {
  let at = -1
  const head =
    '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="b.jsonl"\r\n\r\n'
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at === -1) controller.enqueue(encoder.encode(head))
      else if (at < lines) controller.enqueue(encoder.encode(lineOf(at)))
      else {
        controller.enqueue(encoder.encode('\r\n--b--\r\n'))
        controller.close()
      }
      at++
    },
  })
  return { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body }
}

test(
  `a batch of ${MEGABYTES} MB makes the resident memory grow by less than ${MOST_GROWTH} MB`,
  async () => {
    const vendor = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        await request.arrayBuffer()
        return Response.json(ANSWER)
      },
    })
    const plan: BatchPlan = {
      store_url: `sqlite:${join(directory, 'gatehouse.db')}`,
      data_dir: directory,
      vendor_url: `http://127.0.0.1:${vendor.port}/v1`,
      token: TOKEN,
      speed: 30,
      epoch_ms: Date.now(),
    }
    const script = join(import.meta.dir, 'kit/batch-gateway.ts')
    const child = Bun.spawn([process.execPath, '--smol', script, JSON.stringify(plan)], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
    let peak = 0
    const measure = setInterval(() => {
      peak = Math.max(peak, resident())
    }, 100)
    await using _ = {
      async [Symbol.asyncDispose]() {
        clearInterval(measure)
        child.kill('SIGTERM')
        await child.exited
        await vendor.stop(true)
      },
    }
    const url = await firstLine(child.stdout)
    const call = async <T>(path: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${TOKEN}`, ...init.headers }
      return (await (await fetch(`${url}${path}`, { ...init, headers })).json()) as T
    }
    type Seen = { status: string; request_counts: { completed: number; failed: number } }
    /** How many lines have ended in which way. */
    async function run(lines: number, executed = lines) {
      const { id: input_file_id } = await call<{ id: string }>('/v1/files', { method: 'POST', ...formOf(lines) })
      const asked = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' }
      const headers = { 'content-type': 'application/json' }
      const { id } = await call<{ id: string }>('/v1/batches', { method: 'POST', headers, body: JSON.stringify(asked) })
      for (let isCancelled = false; ; await Bun.sleep(250)) {
        const { status, request_counts: counts } = await call<Seen>(`/v1/batches/${id}`)
        if (status === 'completed' || status === 'cancelled') return counts.completed + counts.failed
        expect(['validating', 'in_progress', 'finalizing', 'cancelling']).toContain(status)
        if (isCancelled || counts.completed < executed) continue
        await call(`/v1/batches/${id}/cancel`, { method: 'POST' })
        isCancelled = true
      }
    }

    expect(await run(WARM_LINES)).toBe(WARM_LINES)
    const before = peak
    peak = 0
    const lines = Math.floor((MEGABYTES * 1_000_000) / lineOf(10_000).length)
    const start = performance.now()
    expect(await run(lines, EXECUTED)).toBe(lines)
    const seconds = Math.round((performance.now() - start) / 1000)
    process.stderr.write(`${JSON.stringify({ lines, megabytes: MEGABYTES, seconds, before, peak })}\n`)
    expect(peak - before).toBeLessThan(MOST_GROWTH)
  },
  120_000 + MEGABYTES * 6_000,
)
