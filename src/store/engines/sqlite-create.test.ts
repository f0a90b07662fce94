import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockCreation } from './sqlite-create.ts'
import { fillSqlite } from './sqlite-fill.ts'

let scripts: string
let directory: string
let path: string
beforeEach(() => {
  scripts = mkdtempSync(join(tmpdir(), 'gatehouse-create-'))
  directory = join(scripts, 'data')
  mkdirSync(directory)
  path = join(directory, 'gatehouse.db')
})
afterEach(() => rmSync(scripts, { recursive: true, force: true }))

/** A process that opens the database, with `replaced` in place of functions of `node:fs`. */
async function open(replaced: string, work = 'await (await openSqlite(path)).close()') {
  const preload = join(scripts, `${crypto.randomUUID()}.ts`)
  writeFileSync(
    preload,
    `import { mock } from 'bun:test'
    import * as original from 'node:fs'
    const fs = { ...original }
    const { readFileSync, renameSync, writeFileSync } = fs
    const die = () => process.kill(process.pid, 'SIGKILL')
    mock.module('node:fs', () => ({ ...fs, ${replaced} }))`,
  )
  const script = `
    import { openSqlite } from ${JSON.stringify(join(import.meta.dir, 'sqlite.ts'))}
    import { fillSqlite } from ${JSON.stringify(join(import.meta.dir, 'sqlite-fill.ts'))}
    const path = ${JSON.stringify(path)}
    ${work}`
  const child = Bun.spawn([process.execPath, '--preload', preload, '-e', script], { stderr: 'pipe' })
  const stderr = await new Response(child.stderr).text()
  await child.exited
  return { killed: child.signalCode === 'SIGKILL', stderr }
}
const OPENED = { killed: false, stderr: '' }
const NO_LINKS = `linkSync() { throw Object.assign(new Error('EPERM: operation not permitted'), { code: 'EPERM' }) }`

describe('a new database', () => {
  it('of a process that was killed before it had its name leaves nothing after the next start', async () => {
    expect(await open('linkSync: die, renameSync: die')).toMatchObject({ killed: true })
    expect(readdirSync(directory)).toContain('gatehouse.db.new')
    expect(await open('')).toEqual(OPENED)
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
  })

  it('of a process that was killed as soon as it had its name leaves nothing after the next start', async () => {
    const renamed = 'renameSync(from, to) { renameSync(from, to); die() }'
    expect(await open(renamed)).toMatchObject({ killed: true })
    expect(readdirSync(directory).sort()).toEqual(['gatehouse.db', 'gatehouse.db.new-lock'])
    expect(await open('')).toEqual(OPENED)
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
  })

  it('is left alone while another process writes it', async () => {
    {
      using creation = lockCreation(path, 0)
      if (!creation) throw new Error('it is there')
      writeFileSync(creation.temporary, 'half')
      await expect(fillSqlite(path, async () => {})).rejects.toThrow(`Another process is creating ${path}.`)
      new Database(path).run('create table a (b)') // by something that takes no lock
      expect(await open('')).toEqual(OPENED)
      expect(readFileSync(creation.temporary, 'utf8')).toBe('half')
    }
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
  })

  it('is never half there on a file system without hard links', async () => {
    const half = 'copyFileSync(from, to) { writeFileSync(to, readFileSync(from).subarray(0, 1_000)); die() }'
    await open(`${NO_LINKS}, ${half}`)
    expect(await open(NO_LINKS)).toEqual(OPENED)
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
  })

  it('is made by one of several processes on a file system without hard links', async () => {
    expect(await Promise.all(Array.from({ length: 4 }, () => open(NO_LINKS)))).toEqual(Array(4).fill(OPENED))
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
  })

  it('is restored on a file system without hard links, and only where there is none', async () => {
    expect(await open(NO_LINKS, `await fillSqlite(path, async () => {})`)).toEqual(OPENED)
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
    expect((await open(NO_LINKS, `await fillSqlite(path, async () => {})`)).stderr).toContain(
      'exists, and was not changed',
    )
  })
})
