import { describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { entry } from '../../../test/kit/ledger.ts'
import { createSpool } from './spool.ts'

describe('a spool whose file another process has taken', () => {
  it('counts none of its bytes any more', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-spool-'))
    const one = entry({ entry_id: 'a' })
    const size = Buffer.byteLength(`${JSON.stringify(one)}\n`)
    const later = () => Date.now() + 60_000
    const other = createSpool({ directory, max_bytes: 10 * size, now: later })
    const spool = createSpool({ directory, max_bytes: 2 * size, now: Date.now })
    await spool.append([one])
    await other.replay(async () => {})
    expect(spool.bytes()).toBe(size) // it is noticed when something is written
    await spool.append([entry({ entry_id: 'b' })])
    expect(spool.bytes()).toBe(size)
    await spool.append([entry({ entry_id: 'c' })])
    await expect(spool.append([entry({ entry_id: 'd' })])).rejects.toThrow('is full')
    expect(spool.bytes()).toBe(2 * size)
    await other.replay(async () => {})
    await spool.append([entry({ entry_id: 'd' })]) // a full spool notices it, too
    expect(spool.bytes()).toBe(size)
    expect(readdirSync(directory)).toHaveLength(1)
    await spool.close()
    rmSync(directory, { recursive: true })
  })
})

describe('the replay of a spool', () => {
  it('goes past what it cannot read, keeps it, and tells where it is', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-spool-'))
    const old = (name: string) => utimesSync(join(directory, name), 1, 1)
    mkdirSync(join(directory, '000000000a.entries'))
    writeFileSync(join(directory, '000000001b.entries'), '{"entry_id":"a"}\nnull\n{"entry_id\n{"entry_id":"b"}\n{"cut')
    writeFileSync(join(directory, '000000002c.entries'), '{"entry_id":"c"}\n{"cut')
    for (const name of readdirSync(directory)) old(name)
    const unreadable: string[] = []
    const spool = createSpool({
      directory,
      max_bytes: 1_000,
      now: () => 1_000_000,
      onUnreadable: (path) => void unreadable.push(path),
    })
    const found: string[] = []
    await spool.replay(async (entries) => void found.push(...entries.map(({ entry_id }) => entry_id)))
    expect(found).toEqual(['a', 'b', 'c'])
    expect(unreadable).toEqual([
      expect.stringContaining('000000000'),
      expect.stringMatching(/000000001.*\.entries\.damaged$/),
    ])
    expect(
      readdirSync(directory)
        .map((name) => name.slice(0, 9))
        .sort(),
    ).toEqual(['000000000', '000000001'])
    rmSync(directory, { recursive: true })
  })
})
