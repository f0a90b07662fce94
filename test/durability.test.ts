/** Confirmed writes survive kills at any time, and two processes that write at once. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTokens } from '../src/accounts/tokens.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { openStore } from '../src/store/open-store.ts'

const directories: string[] = []
afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})

async function freshFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-durability-'))
  directories.push(directory)
  return join(directory, 'gatehouse.db')
}

const source = (path: string) => JSON.stringify(join(import.meta.dir, '../src', path))

/** Issues tokens and counts usage, and prints each token once it is confirmed; `rounds` may be infinite. */
const WRITER = `
  import { writeSync } from 'node:fs'
  import { systemClock } from ${source('kit/clock.ts')}
  import { createLog } from ${source('kit/log.ts')}
  import { openStore } from ${source('store/open-store.ts')}
  import { createTokens } from ${source('accounts/tokens.ts')}
  import { entry } from ${source('../test/kit/ledger.ts')}
  const [path, rounds] = process.argv.slice(1)
  const store = await openStore({ url: 'sqlite:' + path })
  const log = createLog({ clock: systemClock, level: 'error', pretty: false, write: (text) => writeSync(2, text) })
  const tokens = createTokens({ store: store.tokens, projects: store.projects, clock: systemClock, log, defaults: {} })
  writeSync(1, 'ready\\n')
  for (let round = 0; round < Number(rounds); round++) {
    const { token, secret } = await tokens.issue({ name: process.pid + ' ' + round })
    await store.ledger.append([entry({ token_id: 'tok_shared', model: 'm', at_ms: 0,
      units: { input_tokens: 2, output_tokens: 3 } })])
    writeSync(1, token.token_id + ' ' + secret + '\\n')
  }
  await tokens.close()
  await store.close()`

function startWriter(path: string, rounds: number) {
  return Bun.spawn([process.execPath, '-e', WRITER, path, String(rounds)], { stdout: 'pipe', stderr: 'pipe' })
}

/** Complete lines only: the kill may have cut the last one, which is then unconfirmed. */
const promised = (out: string) =>
  out
    .split('\n')
    .slice(0, -1)
    .filter((line) => line !== 'ready')
    .map((line) => line.split(' '))

function integrity(path: string): unknown {
  const file = new Database(path)
  const answer = file.query('PRAGMA integrity_check').get()
  file.close()
  return answer
}

/** The confirmed tokens that the store does not accept. */
async function missing(path: string, pairs: string[][]): Promise<string[][]> {
  const store = await openStore({ url: `sqlite:${path}` })
  const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })
  const tokens = createTokens({ store: store.tokens, projects: store.projects, clock: systemClock, log, defaults: {} })
  const lost: string[][] = []
  for (const [token_id = '', secret = ''] of pairs) {
    const caller = await Promise.resolve(
      tokens.authenticate(secret, { address: 'test', signal: new AbortController().signal }),
    ).catch(() => {})
    if (caller?.token_id !== token_id) lost.push([token_id])
  }
  const [sum] = await store.usage.list({ limit: 1 })
  expect(sum?.requests ?? 0).toBeGreaterThanOrEqual(pairs.length)
  await tokens.close()
  await store.close()
  return lost
}

/** Reads until the writer has confirmed `count` tokens, then kills it some moments later. */
async function killAfter(writer: ReturnType<typeof startWriter>, { lines, turns }: { lines: number; turns: number }) {
  let out = ''
  let killed = false
  const decoder = new TextDecoder()
  for await (const bytes of writer.stdout) {
    out += decoder.decode(bytes, { stream: true })
    if (killed || out.split('\n').length <= lines) continue
    killed = true
    for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    writer.kill('SIGKILL')
  }
  await writer.exited
  return { out, signal: writer.signalCode }
}

describe('a kill at any moment', () => {
  test('loses no confirmed token, and the next start needs no repair', async () => {
    const path = await freshFile()
    const all: string[][] = []
    // From before the tables exist (no line yet) to the middle of a busy run; `turns` shifts the moment within a round.
    for (let kill = 0; kill < 8; kill++) {
      const writer = startWriter(path, Number.POSITIVE_INFINITY)
      const { out, signal } = await killAfter(writer, { lines: 1 + ((kill * 7) % 30), turns: (kill * 37) % 101 })
      expect([await new Response(writer.stderr).text(), signal]).toEqual(['', 'SIGKILL'])
      all.push(...promised(out))
      expect(integrity(path)).toEqual({ integrity_check: 'ok' })
    }
    expect(all.length).toBeGreaterThan(60)
    expect(await missing(path, all)).toEqual([])
  }, 120_000)

  test('during the migration leaves a file that the next start completes', async () => {
    for (const ms of [5, 25, 40, 50, 60]) {
      const path = await freshFile()
      const writer = startWriter(path, 1)
      await Bun.sleep(ms)
      writer.kill('SIGKILL')
      await writer.exited
      expect(await missing(path, promised(await new Response(writer.stdout).text()))).toEqual([])
      expect(integrity(path)).toEqual({ integrity_check: 'ok' })
    }
  }, 120_000)
})

test('processes that write to one file at the same time lose nothing', async () => {
  const path = await freshFile()
  const writers = [startWriter(path, 40), startWriter(path, 40), startWriter(path, 40)]
  const outs = await Promise.all(writers.map((writer) => new Response(writer.stdout).text()))
  for (const writer of writers) {
    expect([await new Response(writer.stderr).text(), await writer.exited]).toEqual(['', 0])
  }
  const pairs = outs.flatMap(promised)
  expect(pairs).toHaveLength(120)
  expect(await missing(path, pairs)).toEqual([])
  const store = await openStore({ url: `sqlite:${path}` })
  expect(await store.tokens.list()).toHaveLength(120)
  expect(await store.tokens.revision()).toBe(120)
  expect(await store.usage.list({ limit: 10 })).toEqual([
    {
      token_id: 'tok_shared',
      model: 'm',
      hour: 0,
      requests: 120,
      errors: 0,
      input_tokens: 240,
      output_tokens: 360,
      estimated: 0,
    },
  ])
  await store.close()
}, 120_000)
