/**
 * The memory that a batch takes does not depend on its size: one of 200 MB, of which every line is executed, takes little more than calls of
 * clients and a small batch before it. The gateway is a separate process. `GATEHOUSE_BATCH_MEGABYTES` is the size of the batch; 200 is
 * the largest.
 */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BatchPlan } from './kit/batch-gateway.ts'
import { firstLine, TOKEN } from './kit/gateway-process.ts'

const MEGABYTES = Number(process.env.GATEHOUSE_BATCH_MEGABYTES ?? 200)
/** Of 200 MB, each line a call: some 12,000. */
const LINE_BYTES = 16_800
/** Much less than the batch: it is never in memory as a whole. */
const MOST_GROWTH = 30
/** Before it: code that is compiled, the page cache of SQLite and what the collector leaves are no part of the batch. */
const CALLS = 6_000
const WARM_LINES = 1_500
/** Clients that call at a time, and lines that are executed at a time. */
const AT_A_TIME = 8

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
const bodyOf = (at: number) => ({ model: 'acme/chat', messages: [{ role: 'user', content: `${at} ${text}` }] })
const lineOf = (at: number) =>
  `${JSON.stringify({ custom_id: `line-${at}`, method: 'POST', url: '/v1/chat/completions', body: bodyOf(at) })}\n`

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

type Batch = { status: string; request_counts: { total: number; completed: number; failed: number } }

test(
  `a batch of ${MEGABYTES} MB takes less than ${MOST_GROWTH} MB more than calls of clients and a small batch`,
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
      speed: 2,
      epoch_ms: Date.now(),
      concurrency: AT_A_TIME,
    }
    const script = join(import.meta.dir, 'kit/batch-gateway.ts')
    const child = Bun.spawn([process.execPath, script, JSON.stringify(plan)], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
    let samples: number[] = []
    const measure = setInterval(() => samples.push(resident()), 100)
    /** What all but a hundredth of the time takes: the peaks of a long time are higher than those of a short one. */
    function taken() {
      const sorted = samples.sort((one, other) => one - other)
      samples = []
      return { most: sorted[Math.floor(sorted.length * 0.99)] ?? 0, peak: sorted.at(-1) ?? 0 }
    }
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
    const post = <T>(path: string, body: object) =>
      call<T>(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    async function interact(calls: number) {
      let next = 0
      const client = async () => {
        while (next < calls) expect(await post('/v1/chat/completions', bodyOf(next++))).toHaveProperty('choices')
      }
      await Promise.all(Array.from({ length: AT_A_TIME }, client))
    }
    async function run(lines: number) {
      const { id: input_file_id } = await call<{ id: string }>('/v1/files', { method: 'POST', ...formOf(lines) })
      const asked = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' }
      const { id } = await post<{ id: string }>('/v1/batches', asked)
      for (; ; await Bun.sleep(250)) {
        const { status, request_counts } = await call<Batch>(`/v1/batches/${id}`)
        if (status === 'completed') return request_counts
        expect(['validating', 'in_progress', 'finalizing']).toContain(status)
      }
    }

    await interact(CALLS)
    await run(WARM_LINES)
    const before = taken()
    const lines = Math.floor((MEGABYTES * 1_000_000) / lineOf(10_000).length)
    const start = performance.now()
    expect(await run(lines)).toEqual({ total: lines, completed: lines, failed: 0 })
    const seconds = Math.round((performance.now() - start) / 1000)
    const during = taken()
    process.stderr.write(`${JSON.stringify({ lines, megabytes: MEGABYTES, seconds, before, during })}\n`)
    expect(during.most - before.most).toBeLessThan(MOST_GROWTH)
  },
  120_000 + MEGABYTES * 6_000,
)
