import { afterEach, describe, expect, it } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../../test/kit/clock.ts'
import { entry } from '../../../test/kit/ledger.ts'
import { createLog } from '../../kit/log.ts'
import { createJournal } from './journal.ts'
import { createSpool } from './spool.ts'

const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

function setUp() {
  const parent = mkdtempSync(join(tmpdir(), 'gatehouse-journal-'))
  directories.push(parent)
  const directory = join(parent, 'spool')
  const clock = manualClock()
  let logged = ''
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => (logged += text) })
  return {
    parent,
    directory,
    clock,
    journal: createJournal({ directory, now: clock.now, log }),
    files: () => (existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : []),
    /** What another process finds once this one has ended. */
    async replayed() {
      for (const name of readdirSync(directory)) utimesSync(join(directory, name), 1, 1)
      const found: string[] = []
      await createSpool({ directory, max_bytes: 1e9, now: clock.now }).replay(async (entries) => {
        found.push(...entries.map(({ entry_id }) => entry_id))
      })
      return found.sort()
    },
    logged() {
      log.flush()
      return logged
    },
  }
}

const entries = (count: number) => Array.from({ length: count }, () => entry())
const idsOf = (...lists: { entry_id: string }[][]) =>
  lists.flatMap((list) => list.map(({ entry_id }) => entry_id)).sort()

describe('the journal', () => {
  it('has written entries when it returns, and another process replays those that were not released', async () => {
    const { journal, replayed } = setUp()
    const [first, second] = [entries(2), entries(3)]
    expect(journal.write(first)).toBe(2)
    expect(journal.write(second)).toBe(3)
    expect(await replayed()).toEqual(idsOf(first, second))
  })

  it('is empty once all are released, and leaves no file when it closes', () => {
    const { journal, files } = setUp()
    journal.write(entries(2))
    journal.write(entries(2))
    journal.release(3)
    expect(files().map((path) => statSync(path).size > 0)).toEqual([true])
    journal.release(1)
    expect(files().map((path) => statSync(path).size)).toEqual([0])
    journal.close()
    expect(files()).toEqual([])
  })

  it('keeps a file on close whose entries are not in the store', async () => {
    const { journal, replayed } = setUp()
    const left = entries(2)
    journal.write(left)
    journal.close()
    expect(await replayed()).toEqual(idsOf(left))
  })

  it('deletes a file whose entries are released although calls end all the time', async () => {
    const { journal, files, replayed } = setUp()
    let last = entries(100)
    journal.write(last)
    for (let round = 0; round < 50; round++) {
      const next = entries(100)
      journal.write(next)
      journal.release(100)
      expect(files().length).toBeLessThanOrEqual(2)
      last = next
    }
    expect(files().reduce((sum, path) => sum + statSync(path).size, 0)).toBeLessThan(600_000)
    expect(await replayed()).toEqual(expect.arrayContaining(idsOf(last)))
  })

  it('syncs what was written since', async () => {
    const { journal, parent, files, logged } = setUp()
    await journal.sync()
    journal.write(entries(1))
    await journal.sync()
    await journal.sync()
    journal.release(1)
    await journal.sync()
    expect(files()).toHaveLength(1)
    journal.write(entries(1))
    renameSync(join(parent, 'spool'), join(parent, 'gone'))
    await journal.sync()
    expect(logged().match(/could not be synced/g)).toHaveLength(1)
    renameSync(join(parent, 'gone'), join(parent, 'spool'))
    await journal.sync()
    expect(logged().match(/could not be synced/g)).toHaveLength(1)
  })

  it('writes entries again when another process has taken its file', async () => {
    const { journal, files, parent, replayed, clock } = setUp()
    journal.write(entries(1))
    const [path = ''] = files()
    renameSync(path, join(parent, 'taken'))
    clock.advance(5_000) // none is taken that was written to more recently
    const again = entries(2)
    journal.write(again)
    expect(await replayed()).toEqual(idsOf(again))
    journal.release(3)
    journal.close()
    expect(files()).toEqual([])
  })

  it('loses nothing where another process is about to take its file when it is written to after a pause', async () => {
    const { journal, directory, files, clock } = setUp()
    for (let round = 0; round < 300; round++) {
      clock.advance(20_000)
      for (const path of files()) utimesSync(path, 1, 1)
      const spool = createSpool({ directory, max_bytes: 1e9, now: Date.now })
      const taking = spool.replay(async () => {})
      for (let turn = 0; turn < round % 15; turn++) await new Promise(setImmediate)
      journal.write(entries(1))
      await taking
      const next = entries(1)
      journal.write(next)
      const left = files().map((path) => readFileSync(path, 'utf8'))
      expect(left.join('')).toContain(next[0]?.entry_id ?? '')
      journal.release(2)
    }
    journal.close()
  })

  it('writes entries again when its file is taken right after a write', async () => {
    const { journal, files, parent, replayed } = setUp()
    journal.write(entries(1))
    for (let round = 0; round < 3; round++) {
      const [path = ''] = files()
      renameSync(path, join(parent, `taken-${round}`)) // by a process whose clock differs
      const found = entries(1)
      journal.write(found)
      expect(readFileSync(files()[0] ?? '', 'utf8')).toContain(found[0]?.entry_id ?? '')
    }
    await replayed()
    journal.close()
  })

  it('goes on where a file cannot be deleted, whose entries are replayed once more', () => {
    const { journal, files, parent, replayed } = setUp()
    journal.write(entries(1_000)) // a whole file
    const [path = ''] = files()
    renameSync(path, join(parent, 'moved'))
    mkdirSync(path)
    const left = entries(1)
    journal.write(left)
    journal.release(1_000)
    rmdirSync(path)
    expect(files()).toHaveLength(1)
    journal.close()
    return expect(replayed()).resolves.toEqual(idsOf(left))
  })

  it('reports no failure where files are released while they are synced', async () => {
    const { journal, files, logged } = setUp()
    for (let file = 0; file < 3; file++) journal.write(entries(1_000))
    expect(files()).toHaveLength(3)
    const syncing = journal.sync()
    journal.release(2_000)
    await syncing
    expect(logged()).toBe('')
    journal.close()
  })

  it('logs once that the disk does not take it, and goes on when it does', () => {
    const { journal, directory, files, logged } = setUp()
    writeFileSync(directory, 'not a directory')
    expect(journal.write(entries(1))).toBe(0)
    expect(journal.write(entries(1))).toBe(0)
    expect(logged().match(/could not be written/g)).toHaveLength(1)
    rmSync(directory)
    expect(journal.write(entries(1))).toBe(1)
    expect(files().map((path) => readFileSync(path, 'utf8').split('\n').length)).toEqual([2])
  })
})
