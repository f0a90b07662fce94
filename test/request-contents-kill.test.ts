/** A gateway is killed while it records contents: what was written is whole and readable, and nothing is on the disk as plain text. */
import { Database } from 'bun:sqlite'
import { afterEach, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sealingKey } from '../src/kit/sealed-text.ts'
import { readContents } from '../src/observe/requests/contents-log.ts'
import { openStore } from '../src/store/open-store.ts'
import type { RecordingPlan } from './kit/recording-process.ts'

const KEY = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
const MARK = 'quicksilver'
const TOKEN = 'sk-crash-suite-0000000000000000'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(plan: RecordingPlan) {
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

function storedContents(directory: string): number {
  const database = new Database(join(directory, 'gatehouse.db'), { readonly: true })
  try {
    return database.query<{ count: number }, []>('select count(*) as count from request_contents').get()?.count ?? 0
  } finally {
    database.close()
  }
}

it('loses contents in memory at most: those that are stored are whole, and none is plain text', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-contents-kill-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
  const keys = [sealingKey(KEY)].flatMap((key) => key ?? [])
  const plan = { data_dir: directory, token: TOKEN, key: KEY, request_log: { contents: { on_for: ['*'] } } }
  let seen = new Set<string>()
  let sent = 0
  for (let round = 0; round < 3; round++) {
    const { url, kill } = await start({ ...plan, store_url })
    // Until contents of this round are stored; then other numbers of calls in each, so that the kill comes at other moments.
    for (let more = 7 + 13 * round; more > 0; ) {
      if (storedContents(directory) > seen.size) more--
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'content-type': 'application/json',
          'x-request-id': `call-${sent}`,
        },
        body: JSON.stringify({ model: 'sandbox/general', messages: [{ role: 'user', content: `${MARK} ${sent}` }] }),
      })
      await response.text()
      expect(response.status).toBe(200)
      sent++
    }
    await kill()
    for (const file of readdirSync(directory).filter((name) => name.startsWith('gatehouse.db'))) {
      expect([file, readFileSync(join(directory, file), 'latin1').includes(MARK)]).toEqual([file, false])
    }
    const store = await openStore({ url: store_url })
    const found = new Set<string>()
    let after: { at_ms: number; row_id: number } | undefined
    do {
      const page = await store.requestLog.search({ filter: {}, after, limit: 500 })
      for (const { row_id, request_id } of page.rows) {
        const contents = await readContents({ row_id, request_id }, { store: store.requestContents, keys })
        if (!contents) continue
        expect(contents.input[0]?.parts[0]?.text).toBe(`${MARK} ${request_id.replace('call-', '')}`)
        found.add(request_id)
      }
      after = page.next
    } while (after)
    await store.close()
    // What was stored before the kill of the round before is still there.
    expect([...seen].filter((id) => !found.has(id))).toEqual([])
    seen = found
  }
  expect(seen.size).toBeGreaterThan(0)
})
