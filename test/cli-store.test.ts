/** `gatehouse store check`, run as a child process on sound, damaged and missing databases. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openStore } from '../src/store/open-store.ts'
import { storedToken } from './kit/accounts.ts'
import { startPostgres } from './kit/postgres.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')

let directory: string
let path: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-store-'))
  path = join(directory, 'data/gatehouse.db')
  const store = await openStore({ url: `sqlite:${path}` })
  for (let at = 0; at < 20; at++)
    await store.tokens.add(storedToken({ token_id: `tok_${at}`, name: `laptop ${at}`, hash: `digest of ${at}.` }))
  await store.close()
})
afterEach(() => rmSync(directory, { recursive: true }))

async function check(args: string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([COMMAND, 'store', 'check', ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, err, code }
}

/** Changes one hash either in the table of tokens or in the index of hashes, whichever comes first in the file. */
function damageOneRow(): void {
  const bytes = readFileSync(path)
  const at = bytes.indexOf('digest of 7.')
  expect(at).toBeGreaterThan(0)
  bytes.write('fidget of 7.', at)
  writeFileSync(path, bytes)
}

describe('gatehouse store check on SQLite', () => {
  it('finds nothing in a sound database, and changes nothing', async () => {
    const before = readFileSync(path)
    const { out, err, code } = await check([])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    expect(out).toBe(`No damage was found in the store in ${join(directory, 'data')} (integrity_check).\n`)
    expect(JSON.parse((await check(['--json', '--quick'])).out)).toEqual({
      store: join(directory, 'data'),
      is_ok: true,
      engine: 'sqlite',
      checked: ['quick_check'],
      problems: [],
    })
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('checks the database of a running gateway, with what is only in its log', async () => {
    const store = await openStore({ url: `sqlite:${path}` })
    await store.tokens.add(storedToken({ token_id: 'tok_new', name: 'new', hash: 'new' }))
    expect(readdirSync(join(directory, 'data'))).toContain('gatehouse.db-wal')
    expect((await check([])).code).toBe(0)
    expect((await store.tokens.list()).length).toBe(21)
    await store.close()
  })

  it('exits with 1 and says which index differs from its table', async () => {
    damageOneRow()
    const { out, code } = await check([])
    expect(code).toBe(1)
    expect(out).toContain('Something is wrong with the store in ')
    expect(out).toMatch(/missing from index/)
    const { is_ok, problems } = JSON.parse((await check(['--json'])).out)
    expect(is_ok).toBe(false)
    expect(problems.length).toBeGreaterThan(0)
  })

  it.each([
    ['has pages of garbage', () => readFileSync(path).fill(0xa5, 4_096), /malformed|invalid|Tree|page/],
    ['is no database', () => Buffer.from('x'.repeat(8_192)), /not a database/],
    ['is empty', () => Buffer.alloc(0), /the file is empty/],
  ])('exits with 1 if the file %s', async (_, damaged, problem) => {
    writeFileSync(path, damaged())
    const { out, err, code } = await check([])
    expect({ err, code }).toEqual({ err: '', code: 1 })
    expect(out).toMatch(problem)
    expect(out).toContain('restore a backup')
  })

  it('exits with 1 where there is no store, and creates none', async () => {
    const { err, code } = await check(['--data-dir', 'elsewhere'])
    expect(code).toBe(1)
    expect(err).toStartWith(`gatehouse: There is no store in ${join(directory, 'elsewhere')}.`)
    expect(readdirSync(directory)).toEqual(['data'])
  })
})

describe('gatehouse store check on PostgreSQL', () => {
  it('says what it can check, and finds an invalid index', async () => {
    const url = await (await startPostgres()).createDatabase()
    await (await openStore({ url })).close()
    const environment = { GATEHOUSE_DATABASE_URL: url }
    const sound = await check([], environment)
    expect({ err: sound.err, code: sound.code }).toEqual({ err: '', code: 0 })
    expect(sound.out).toMatch(
      /^No damage was found in the store in the PostgreSQL database \(indexes(, checksums)?\)\./,
    )
    expect(sound.out).toContain('pg_amcheck')
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(`update pg_index set indisvalid = false where indexrelid = 'tasks_sizes'::regclass`)
    await client.end()
    const { out, code } = await check(['--json'], environment)
    expect(code).toBe(1)
    expect(JSON.parse(out).problems).toEqual([
      'the index tasks_sizes is not valid; rebuild it with: reindex index tasks_sizes',
    ])
  })

  it('exits with 1 where the server cannot be reached, without the password', async () => {
    const url = 'postgres://gatehouse:hunter2@127.0.0.1:1/gatehouse'
    const { err, code } = await check([], { GATEHOUSE_DATABASE_URL: url })
    expect(code).toBe(1)
    expect(err).toContain('Cannot use the PostgreSQL database "gatehouse" at 127.0.0.1:1')
    expect(err).not.toContain('hunter2')
  })
})
