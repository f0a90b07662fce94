/** A backup of a gateway that executes a batch is restored elsewhere: the batch continues, and no line with a result is called again. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runBackup } from '../src/cli/commands/backup.ts'
import { run as runRestore } from '../src/cli/commands/restore.ts'
import type { BatchPlan } from './kit/batch-gateway.ts'
import { linesIn } from './kit/batches.ts'
import { firstLine, TOKEN } from './kit/gateway-process.ts'
import { collectingTerminal } from './kit/terminal.ts'

const LINES = 40
const ANSWERED = 15
const CONCURRENCY = 4

/** Answers so many calls, and keeps the next ones waiting until it is opened. */
function startVendor() {
  const calls = new Map<string, number>()
  const [opened, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let count = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { messages } = (await request.json()) as { messages: { content: string }[] }
      const content = messages[0]?.content ?? ''
      calls.set(content, (calls.get(content) ?? 0) + 1)
      if (++count === ANSWERED + CONCURRENCY) held.resolve()
      if (count > ANSWERED) await opened.promise
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      return Response.json({ id: 'c', object: 'chat.completion', created: 1, model: 'chat', choices, usage })
    },
  })
  return { calls, held: held.promise, open: opened.resolve, url: `http://127.0.0.1:${server.port}/v1`, server }
}

async function startProcess(plan: BatchPlan) {
  const script = join(import.meta.dir, 'kit/batch-gateway.ts')
  const child = Bun.spawn([process.execPath, script, JSON.stringify(plan)], { stdout: 'pipe', stderr: 'inherit' })
  const url = await firstLine(child.stdout)
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${TOKEN}`, ...init.headers } })
  return { child, call }
}

test('a batch continues from a backup that was taken while it ran, and its results are not paid for twice', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-batch-restore-'))
  const [first, second] = [join(directory, 'first'), join(directory, 'second')]
  const vendor = startVendor()
  const planIn = (data_dir: string, ahead_ms: number): BatchPlan => ({
    store_url: `sqlite:${join(data_dir, 'gatehouse.db')}`,
    data_dir,
    vendor_url: vendor.url,
    token: TOKEN,
    speed: 5,
    epoch_ms: Date.now(),
    ahead_ms,
    concurrency: CONCURRENCY,
  })
  const gatehouse = async (run: typeof runBackup, data_dir: string, ...args: string[]) => {
    const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: data_dir }
    expect(await run(args, collectingTerminal({ cwd: directory, environment }).terminal)).toBe(0)
  }
  try {
    const running = await startProcess(planIn(first, 0))
    const form = new FormData()
    form.append('purpose', 'batch')
    const body = (content: string) => ({ model: 'acme/chat', messages: [{ role: 'user', content }] })
    const lines = Array.from({ length: LINES }, (_, at) => ({
      custom_id: `line-${at}`,
      method: 'POST',
      body: body(`${at}`),
    }))
    const text = lines.map((line) => JSON.stringify({ ...line, url: '/v1/chat/completions' })).join('\n')
    form.append('file', new File([text], 'lines.jsonl'))
    const file = (await (await running.call('/v1/files', { method: 'POST', body: form })).json()) as { id: string }
    const asked = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const headers = { 'content-type': 'application/json' }
    const created = await running.call('/v1/batches', { method: 'POST', headers, body: JSON.stringify(asked) })
    const { id } = (await created.json()) as { id: string }
    await vendor.held
    await gatehouse(runBackup, first, 'taken.backup')
    running.child.kill('SIGKILL')
    await running.child.exited
    vendor.open()
    await gatehouse(runRestore, second, 'taken.backup')

    const restored = await startProcess(planIn(second, 61_000))
    type Seen = { status: string; output_file_id: string; error_file_id: string | null }
    let batch: Seen
    do batch = (await (await restored.call(`/v1/batches/${id}`)).json()) as Seen
    while (batch.status === 'in_progress' || batch.status === 'finalizing')
    expect(batch).toMatchObject({ status: 'completed', error_file_id: null })
    const results = linesIn(await (await restored.call(`/v1/files/${batch.output_file_id}/content`)).text())
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(lines.map(({ custom_id }) => custom_id).sort())
    const again = results.filter(({ called_again }) => called_again).map(({ custom_id }) => custom_id.slice(5))
    const twice = [...vendor.calls].filter(([, calls]) => calls > 1).map(([content]) => content)
    // Calls that the vendor had not answered when the backup was taken.
    expect([again.sort(), again.length]).toEqual([twice.sort(), CONCURRENCY])
    restored.child.kill('SIGTERM')
    await restored.child.exited
  } finally {
    await vendor.server.stop(true)
    rmSync(directory, { recursive: true })
  }
}, 120_000)
