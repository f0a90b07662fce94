/** Tasks that SQLite has committed, and that are not on the disk yet: nobody is told of them, and no worker gets them. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blankTask } from '../families/tasks/lifecycle.ts'
import type { Engine } from './engine.ts'
import { openSqlite } from './engines/sqlite.ts'
import { taskStore } from './tasks/tasks.ts'

const engines: Engine[] = []
const directories: string[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

const turns = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}

/** A task that was added with the key `k`, and waits for its sync. Syncs end when the test says so. */
async function addWithoutSync() {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-visible-'))
  directories.push(directory)
  const syncs: PromiseWithResolvers<void>[] = []
  const engine = await openSqlite(join(directory, 'gatehouse.db'), {
    open: async () => 1,
    close: async () => {},
    rewrite: () => {},
    sync() {
      const sync = Promise.withResolvers<void>()
      syncs.push(sync)
      return sync.promise
    },
  })
  engines.push(engine)
  const tasks = taskStore(engine)
  const task = blankTask({
    task_id: 'task_a',
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'sandbox/text-to-video',
    submit_time: 1_000,
    request: {},
    base_url: '',
    deadline_at: 4_600,
    due_ms: 10_000,
  })
  const ended: string[] = []
  const note = (name: string) => () => void ended.push(name)
  void tasks.add({ task, idempotency: { key: 'k', body_hash: 'hash', expires_at: 9_000 } }).then(note('added'))
  await turns()
  expect(await tasks.find('task_a')).toEqual(task)
  return { tasks, syncs, ended, note }
}

test('a repeated request gets its task once the task is on the disk', async () => {
  const { tasks, syncs, ended, note } = await addWithoutSync()
  void tasks.findByKey('tok_a', 'k', 1_001).then(note('found'))
  await turns()
  expect(ended).toEqual([])
  syncs[0]?.resolve()
  await turns()
  syncs[1]?.resolve()
  await turns()
  expect(ended).toEqual(['added', 'found'])
})

test('a worker gets a task once the task and its claim are on the disk', async () => {
  const { tasks, syncs, ended, note } = await addWithoutSync()
  void tasks.claim({ by: 'worker', provider: '', now_ms: 20_000, until_ms: 50_000, limit: 1 }).then(note('claimed'))
  await turns()
  expect(ended).toEqual([])
  syncs[0]?.resolve()
  await turns()
  expect(ended).toEqual(['added'])
  syncs[1]?.resolve()
  await turns()
  expect(ended).toEqual(['added', 'claimed'])
})
