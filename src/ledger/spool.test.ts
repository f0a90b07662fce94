import { describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSpool } from './spool.ts'

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
