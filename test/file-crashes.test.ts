/** Files whose upload or deletion is interrupted: nothing is seen of them, and nothing is left. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFiles } from '../src/families/files/files.ts'
import { createLog } from '../src/kit/log.ts'
import { createDirectory } from '../src/outputs/directory.ts'
import { openStore } from '../src/store/open-store.ts'
import { manualClock } from './kit/clock.ts'
import { NO_QUOTA } from './kit/quota.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

const SETTINGS = { max_bytes: 1_000, batch_max_bytes: 1_000, keep_days: 0, batch_keep_days: 30 }
const OWNER = { token_id: 'tok_a' }
const OUTPUT = {
  owner: OWNER,
  purpose: 'batch_output',
  filename: 'out.jsonl',
  content_type: 'application/jsonl',
} as const
const { signal } = new AbortController()
const bodyOf = (text: string) => new Blob([text]).stream()
const hour = 3_600_000

async function start() {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-files-'))
  const store = await openStore({ url: 'sqlite::memory:' })
  cleanups.push(
    () => rmSync(directory, { recursive: true, force: true }),
    () => store.close(),
  )
  const clock = manualClock()
  const log = createLog({ clock, level: 'debug', pretty: false, write: () => {} })
  const outputs = createDirectory({ directory })
  const parts = {
    store: store.files,
    outputs,
    quota: NO_QUOTA,
    projectQuota: NO_QUOTA,
    settings: () => SETTINGS,
    clock,
    log,
  }
  return {
    clock,
    store: store.files,
    outputs,
    files: createFiles(parts),
    /** A process whose store or outputs fail, as where it was killed between two steps. */
    failing: (more: Partial<typeof parts>) => createFiles({ ...parts, ...more }),
    /** The names of files that hold bytes. */
    left: () =>
      readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((entry) =>
        entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
      ),
    text: async (files: ReturnType<typeof createFiles>, file_id: string) =>
      new Response(await files.read(await files.find(file_id, OWNER))).text(),
  }
}

const killed = () => Promise.reject(new Error('killed'))

describe('an upload', () => {
  it('that is interrupted before its row is finished is removed after two hours, not before', async () => {
    const { clock, files, left, store } = await start()
    const started = await files.upload.begin(OWNER, 'text/plain', 'a.txt')
    await files.upload.receive(started, bodyOf('some text'), signal)
    expect(await files.list(OWNER, { limit: 10, order: 'desc' })).toEqual([])
    expect(left()).not.toEqual([])
    clock.advance(2 * hour - 1_000)
    await files.sweep()
    expect(left()).not.toEqual([])
    clock.advance(1_000)
    expect(await files.sweep()).toBe(false)
    expect(left()).toEqual([])
    expect(await store.due(Number.MAX_SAFE_INTEGER, 10)).toEqual([])
  })

  it('whose body breaks off leaves nothing', async () => {
    const { files, left, store } = await start()
    let sent = false
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent) controller.error(new Error('the client has left'))
        else controller.enqueue(Buffer.from('some text'))
        sent = true
      },
    })
    await expect(files.write(OUTPUT, body, signal)).rejects.toThrow('the client has left')
    expect(left()).toEqual([])
    expect(await store.due(Number.MAX_SAFE_INTEGER, 10)).toEqual([])
  })

  it('that was removed meanwhile is not shown, and its bytes are removed', async () => {
    const { clock, files, left } = await start()
    const started = await files.upload.begin(OWNER, 'text/plain', 'a.txt')
    clock.advance(3 * hour)
    await files.sweep()
    const bytes = await files.upload.receive(started, bodyOf('some text'), signal)
    await expect(files.upload.finish({ started, bytes }, { purpose: 'user_data' })).rejects.toThrow('too slowly')
    await files.upload.discard(started)
    expect(left()).toEqual([])
  })
})

describe('a file that the gateway writes', () => {
  it('is written again by its id after a crash, and once', async () => {
    const { clock, files, failing, left, store, text } = await start()
    const file_id = files.newId()
    const dying = failing({ store: { ...store, finish: killed, remove: killed } })
    await expect(dying.write({ ...OUTPUT, file_id }, bodyOf('half'), signal)).rejects.toThrow('killed')
    await expect(files.find(file_id, OWNER)).rejects.toMatchObject({ code: 'file_not_found' })
    const written = await files.write({ ...OUTPUT, file_id }, bodyOf('whole'), signal)
    expect(written).toMatchObject({ file_id, bytes: 5, purpose: 'batch_output' })
    expect(await files.write({ ...OUTPUT, file_id }, bodyOf('another'), signal)).toEqual(written)
    expect(await text(files, file_id)).toBe('whole')
    clock.advance(3 * hour)
    await files.sweep()
    expect(await text(files, file_id)).toBe('whole')
    // The file and its type.
    expect(left().length).toBe(2)
    expect(await new Response(await files.read(written, { first: 2 })).text()).toBe('ole')
    expect(await new Response(await files.read(written, { first: 1, last: 2 })).text()).toBe('ho')
  })

  it('of two writers at a time is that of one of them, whole', async () => {
    const { clock, files, left, text } = await start()
    const file_id = files.newId()
    const held = Promise.withResolvers<void>()
    const slow = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await held.promise
        controller.enqueue(Buffer.from('slow'))
        controller.close()
      },
    })
    const first = files.write({ ...OUTPUT, file_id }, slow, signal)
    await files.write({ ...OUTPUT, file_id }, bodyOf('quick'), signal)
    held.resolve()
    await expect(first).rejects.toThrow('another process')
    expect(await text(files, file_id)).toBe('quick')
    clock.advance(3 * hour)
    await files.sweep()
    expect(left().length).toBe(2)
  })
})

describe('a file that is deleted', () => {
  it('is gone at once, and its bytes are removed later where they cannot be now', async () => {
    const { files, failing, outputs, left } = await start()
    const { file_id } = await files.write(OUTPUT, bodyOf('text'), signal)
    await failing({ outputs: { ...outputs, remove: killed } }).remove(file_id, OWNER)
    await expect(files.find(file_id, OWNER)).rejects.toMatchObject({ code: 'file_not_found' })
    expect(left()).not.toEqual([])
    await files.sweep()
    expect(left()).toEqual([])
  })

  it('is removed when it has expired, and not before', async () => {
    const { clock, files, left } = await start()
    const { file_id } = await files.write(OUTPUT, bodyOf('text'), signal)
    clock.advance(30 * 24 * hour - 1_000)
    await files.sweep()
    expect((await files.find(file_id, OWNER)).bytes).toBe(4)
    clock.advance(1_000)
    await expect(files.find(file_id, OWNER)).rejects.toMatchObject({ code: 'file_not_found' })
    await files.sweep()
    expect(left()).toEqual([])
  })
})
