/** Finished files: copied from providers despite failures, stored completely or not at all, linked and removed. */
import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../src/kit/clock.ts'
import { createGuardedFetch, type GuardedFetch } from '../src/kit/guarded-fetch.ts'
import { createLog } from '../src/kit/log.ts'
import { createOutputs } from '../src/outputs/create-outputs.ts'
import { createDirectory } from '../src/outputs/directory.ts'
import type { CopySource, FileStore } from '../src/outputs/outputs.ts'
import { GatewayError } from '../src/spec/error.ts'
import { manualClock } from './kit/clock.ts'
import { type Answer, failure, hang, startVendor, type Vendor, type Wire, whole } from './kit/vendor.ts'

const LONG = 300_000
/** How many bytes are written between two syncs. */
const CHECKPOINT = 32 * 1024

const directories: string[] = []
const vendors: Vendor[] = []
afterEach(async () => {
  for (const vendor of vendors.splice(0)) await vendor.stop()
  reading.bytes = 0
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })

/** How far the latest response has been read and written. */
const reading = { bytes: 0, watchers: [] as (() => void)[] }

async function taken(bytes: number): Promise<void> {
  while (reading.bytes < bytes) await new Promise<void>((resolve) => reading.watchers.push(resolve))
}

function watched(guardedFetch: GuardedFetch): GuardedFetch {
  return async (request) => {
    const answer = await guardedFetch(request)
    const reader = answer.body.getReader()
    let bytes = 0
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          // A reader that requests more has written all previous bytes.
          reading.bytes = bytes
          for (const wake of reading.watchers.splice(0)) wake()
          const { done, value } = await reader.read()
          if (done) return controller.close()
          bytes += value.length
          controller.enqueue(value)
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
    return { ...answer, body }
  }
}

type RoomParts = { clock?: Clock; max_bytes?: number; files?: FileStore; root?: string; guardedFetch?: GuardedFetch }

/** Outputs in a directory of their own, with frequent syncs. */
function roomOf({ clock = systemClock, max_bytes = 1e9, root, ...more }: RoomParts = {}) {
  const home = root ?? mkdtempSync(join(tmpdir(), 'gatehouse-outputs-'))
  if (!root) directories.push(home)
  const outputs = createOutputs({
    files: more.files ?? createDirectory({ directory: join(home, 'outputs') }),
    guardedFetch: watched(more.guardedFetch ?? createGuardedFetch({ clock })),
    secret: 'a secret for tests',
    settings: () => ({ link_hours: 24, max_bytes }),
    partial_directory: join(home, 'outputs/.partial'),
    clock,
    log,
    checkpoint_bytes: CHECKPOINT,
  })
  const partials = () => {
    const path = join(home, 'outputs/.partial')
    return existsSync(path) ? readdirSync(path) : []
  }
  return { outputs, home, partials }
}

function vendorOf(...answers: Answer[]): Vendor {
  const vendor = startVendor(...answers)
  vendors.push(vendor)
  return vendor
}

type FileOptions = {
  etag?: string | null
  modified?: string
  type?: string | null
  /** Closes the connection after this many bytes of the body, though more were announced. */
  cutAfter?: number
  /** Stops sending after this many bytes of the body. */
  hangAfter?: number
  ranges?: boolean
  length?: boolean
}

/** A file server like an object store: one file, ranges, `if-range`. */
function file(bytes: Uint8Array, options: FileOptions = {}): Answer {
  const { etag = '"v1"', modified, type = 'video/mp4', ranges = true, length = true } = options
  return async (wire: Wire) => {
    reading.bytes = 0
    const { range, 'if-range': condition } = wire.request.headers
    const first = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0)
    const isPart = ranges && range !== undefined && (condition === undefined || [etag, modified].includes(condition))
    if (isPart && first >= bytes.length) {
      return wire.write(`HTTP/1.1 416 No\r\ncontent-range: bytes */${bytes.length}\r\ncontent-length: 0\r\n\r\n`)
    }
    const body = isPart ? bytes.subarray(first) : bytes
    const head = [
      isPart ? 'HTTP/1.1 206 Partial Content' : 'HTTP/1.1 200 OK',
      ...(isPart ? [`content-range: bytes ${first}-${bytes.length - 1}/${bytes.length}`] : []),
      ...(length ? [`content-length: ${body.length}`] : ['connection: close']),
      ...(etag === null ? [] : [`etag: ${etag}`]),
      ...(modified === undefined ? [] : [`last-modified: ${modified}`]),
      ...(type === null ? [] : [`content-type: ${type}`]),
    ]
    await wire.write(`${head.join('\r\n')}\r\n\r\n`)
    const stop = options.cutAfter ?? options.hangAfter
    await wire.write(body.subarray(0, stop))
    if (options.hangAfter !== undefined) await wire.aborted
    // Bytes that the runtime has received but nothing has read yet are lost with the connection.
    if (options.cutAfter !== undefined) await taken(options.cutAfter)
    if (options.cutAfter !== undefined || !length) wire.close()
  }
}

/** A whole MP4 of that length. Its bytes differ everywhere, so that a misplaced part is detected. */
function video(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = seed
  for (let at = 0; at < length; at++) {
    state = (state * 1103515245 + 12345) & 0x7fffffff
    bytes[at] = state >> 16
  }
  const boxes = Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x08moov\0\0\0\0mdat', 'latin1')
  boxes.writeUInt32BE(Math.max(0, length - 32), 32)
  bytes.set(boxes.subarray(0, length))
  return bytes
}

const sourceOf = (vendor: Vendor, more: Partial<CopySource> = {}): CopySource => ({
  url: `${vendor.origin}/made/video?signature=secret`,
  private_addresses: true,
  ...more,
})
const soon = (clock: Clock = systemClock) => ({ until_ms: clock.now() + 60_000, signal: new AbortController().signal })

async function bytesOf(
  outputs: ReturnType<typeof roomOf>['outputs'],
  key = 'task_1/0',
): Promise<Uint8Array | undefined> {
  const stored = await outputs.open(key)
  return stored && new Uint8Array(await new Response(stored.body()).arrayBuffer())
}

async function errorOf(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.then(
    () => 'nothing was thrown',
    (error) => error,
  )
  if (!(thrown instanceof GatewayError)) throw new Error(`No GatewayError: ${thrown}`)
  return thrown
}

describe('a copy', () => {
  test('stores the complete file under its key, and leaves nothing else', async () => {
    const bytes = video(LONG)
    const { outputs, partials } = roomOf()
    const vendor = vendorOf(file(bytes))
    const copied = await outputs.copy('task_1/0', sourceOf(vendor, { headers: { authorization: 'Key k' } }), soon())
    expect(copied).toEqual({ done: true, output: { key: 'task_1/0', content_type: 'video/mp4', bytes: LONG } })
    expect(await bytesOf(outputs)).toEqual(bytes)
    expect((await outputs.open('task_1/0'))?.content_type).toBe('video/mp4')
    expect(vendor.requests[0]?.headers.authorization).toBe('Key k')
    expect(vendor.requests[0]?.headers.range).toBeUndefined()
    expect(partials()).toEqual([])
  })

  test('that was stored by a step whose outcome was lost is not repeated', async () => {
    const { outputs } = roomOf()
    const vendor = vendorOf(file(video(LONG)))
    const first = await outputs.copy('task_1/0', sourceOf(vendor), soon())
    expect(await outputs.copy('task_1/0', sourceOf(vendor), soon())).toEqual(first)
    expect(vendor.requests.length).toBe(1)
  })

  test('that was interrupted resumes where it was', async () => {
    const bytes = video(LONG)
    const { outputs, partials } = roomOf()
    const vendor = vendorOf(file(bytes, { cutAfter: 100_000 }), file(bytes))
    expect((await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))).code).toBe('upstream_cut')
    expect(await outputs.open('task_1/0')).toBeUndefined()
    expect(partials().length).toBe(1)
    const copied = await outputs.copy('task_1/0', sourceOf(vendor), soon())
    expect(copied).toMatchObject({ done: true, output: { bytes: LONG } })
    expect(await bytesOf(outputs)).toEqual(bytes)
    expect(vendor.requests[1]?.headers).toMatchObject({ range: 'bytes=100000-', 'if-range': '"v1"' })
    expect(partials()).toEqual([])
  })

  test('resumes in another process, too', async () => {
    const bytes = video(LONG)
    const { outputs, home } = roomOf()
    const vendor = vendorOf(file(bytes, { cutAfter: 100_000 }), file(bytes))
    await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
    const again = roomOf({ root: home }).outputs
    await again.copy('task_1/0', sourceOf(vendor), soon())
    expect(vendor.requests[1]?.headers.range).toBe('bytes=100000-')
    expect(await bytesOf(again)).toEqual(bytes)
  })

  test('stops cleanly when its time is up, and resumes at the next call', async () => {
    const clock = manualClock()
    const bytes = video(LONG)
    const vendor = vendorOf(file(bytes, { hangAfter: 100_000 }), file(bytes))
    const { outputs } = roomOf({ clock })
    const copying = outputs.copy('task_1/0', sourceOf(vendor), soon(clock))
    await taken(100_000)
    clock.advance(60_000)
    expect(await copying).toEqual({ done: false, bytes: 100_000 })
    await vendor.idle()
    expect(await outputs.copy('task_1/0', sourceOf(vendor), soon(clock))).toMatchObject({ done: true })
    expect(vendor.requests[1]?.headers.range).toBe('bytes=100000-')
    expect(await bytesOf(outputs)).toEqual(bytes)
  })

  test('stops when its time is up before the server has responded at all', async () => {
    const clock = manualClock()
    const { outputs, partials } = roomOf({ clock })
    const vendor = vendorOf(hang())
    const copying = outputs.copy('task_1/0', sourceOf(vendor), { ...soon(clock), until_ms: clock.now() + 5000 })
    await vendor.request()
    clock.advance(5000)
    expect(await copying).toEqual({ done: false, bytes: 0 })
    expect(partials()).toEqual([])
    expect(await outputs.copy('task_1/0', sourceOf(vendor), { ...soon(clock), until_ms: clock.now() })).toEqual({
      done: false,
      bytes: 0,
    })
    expect(vendor.requests.length).toBe(1)
  })

  test('that is aborted keeps the received bytes, and rejects with the reason', async () => {
    const bytes = video(LONG)
    const vendor = vendorOf(file(bytes, { hangAfter: 100_000 }), file(bytes))
    const { outputs } = roomOf()
    const aborting = new AbortController()
    const copying = outputs.copy('task_1/0', sourceOf(vendor), { ...soon(), signal: aborting.signal })
    await taken(100_000)
    const reason = new Error('enough')
    aborting.abort(reason)
    expect(await copying.catch((error: unknown) => error)).toBe(reason)
    await outputs.copy('task_1/0', sourceOf(vendor), soon())
    expect(vendor.requests[1]?.headers.range).toBe('bytes=100000-')
    expect(await bytesOf(outputs)).toEqual(bytes)
  })

  test('starts again when the file has changed, or the server supports no ranges', async () => {
    const [old, bytes] = [video(LONG), video(LONG + 7, 2)]
    for (const second of [file(bytes, { etag: '"v2"' }), file(bytes, { ranges: false })]) {
      const { outputs } = roomOf()
      const vendor = vendorOf(file(old, { cutAfter: 100_000 }), second)
      await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
      await outputs.copy('task_1/0', sourceOf(vendor), soon())
      expect(vendor.requests.length).toBe(2)
      expect(await bytesOf(outputs)).toEqual(bytes)
    }
  })

  test('never joins parts of two files, even if the server does not notice', async () => {
    const [old, bytes] = [video(LONG), video(LONG + 7, 2)]
    // None of them supports if-range: one has another tag, one only another length, one sends another part.
    const careless: Answer[] = [
      (wire) => part(bytes, 100_000, { etag: '"v2"' })(wire),
      (wire) => part(bytes, 100_000, {})(wire),
      (wire) => part(old, 99_999, {})(wire),
      (wire) => part(old, 100_001, {})(wire),
    ]
    for (const second of careless) {
      const { outputs } = roomOf()
      const vendor = vendorOf(file(old, { cutAfter: 100_000 }), second, file(bytes, { etag: '"v2"' }))
      await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
      await outputs.copy('task_1/0', sourceOf(vendor), soon())
      expect(vendor.requests[2]?.headers.range).toBeUndefined()
      expect(await bytesOf(outputs)).toEqual(bytes)
    }
  })

  test('resumes by date if there is no tag or only a weak one, and by length if there is neither', async () => {
    const bytes = video(LONG)
    const modified = 'Fri, 20 Nov 2026 10:00:00 GMT'
    const rows: [FileOptions, string | undefined][] = [
      [{ etag: null, modified }, modified],
      [{ etag: 'W/"v1"', modified }, modified],
      [{ etag: null }, undefined],
    ]
    for (const [options, condition] of rows) {
      const { outputs } = roomOf()
      const vendor = vendorOf(file(bytes, { ...options, cutAfter: 100_000 }), file(bytes, options))
      await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
      await outputs.copy('task_1/0', sourceOf(vendor), soon())
      expect(vendor.requests[1]?.headers.range).toBe('bytes=100000-')
      expect(vendor.requests[1]?.headers['if-range']).toBe(condition)
      expect(await bytesOf(outputs)).toEqual(bytes)
    }
  })

  test('resumes under a newly signed link, but not from another file', async () => {
    const bytes = video(LONG)
    const { outputs } = roomOf()
    const vendor = vendorOf(file(bytes, { cutAfter: 100_000 }), file(bytes, { cutAfter: 100_000 }), file(bytes))
    const at = (path: string) => sourceOf(vendor, { url: `${vendor.origin}${path}` })
    await errorOf(outputs.copy('task_1/0', at('/a?signature=1'), soon()))
    await errorOf(outputs.copy('task_1/0', at('/a?signature=2'), soon()))
    await outputs.copy('task_1/0', at('/b'), soon())
    expect(vendor.requests.map(({ headers }) => headers.range)).toEqual([undefined, 'bytes=100000-', undefined])
    expect(await bytesOf(outputs)).toEqual(bytes)
  })

  test('that was complete but not stored yet only stores', async () => {
    const bytes = video(LONG)
    const { outputs, home } = roomOf()
    const vendor = vendorOf(file(bytes))
    const broken: FileStore = {
      ...createDirectory({ directory: join(home, 'outputs') }),
      adopt: async () => {
        throw Object.assign(new Error('disk full'), { code: 'ENOSPC' })
      },
    }
    const first = roomOf({ root: home, files: broken }).outputs
    await expect(first.copy('task_1/0', sourceOf(vendor), soon())).rejects.toThrow('disk full')
    expect(await outputs.copy('task_1/0', sourceOf(vendor), soon())).toMatchObject({ done: true })
    expect(vendor.requests.length).toBe(1)
    expect(await bytesOf(outputs)).toEqual(bytes)
  })

  test('to a remote store is downloaded locally first, and resumes locally', async () => {
    const bytes = video(LONG)
    const home = mkdtempSync(join(tmpdir(), 'gatehouse-outputs-'))
    directories.push(home)
    const { open, write, remove } = createDirectory({ directory: join(home, 'elsewhere') })
    const { outputs, partials } = roomOf({ root: home, files: { open, write, remove } })
    const vendor = vendorOf(file(bytes, { cutAfter: 100_000 }), file(bytes))
    await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
    expect(await outputs.copy('task_1/0', sourceOf(vendor), soon())).toMatchObject({
      done: true,
      output: { bytes: LONG },
    })
    expect(vendor.requests[1]?.headers.range).toBe('bytes=100000-')
    expect(await bytesOf(outputs)).toEqual(bytes)
    expect(partials()).toEqual([])
  })

  test('by two processes at once ends complete, whichever is last', async () => {
    const bytes = video(LONG)
    const one = roomOf()
    const two = roomOf({ root: one.home })
    const vendor = vendorOf()
    vendor.otherwise(file(bytes))
    const both = await Promise.all([
      one.outputs.copy('task_1/0', sourceOf(vendor), soon()),
      two.outputs.copy('task_1/0', sourceOf(vendor), soon()),
    ])
    expect(both[0]).toEqual(both[1])
    expect(await bytesOf(one.outputs)).toEqual(bytes)
    expect(one.partials()).toEqual([])
  })

  test('holds only one chunk in memory: each is written before the next is read', async () => {
    const piece = video(64 * 1024)
    const pieces = 50
    const late: number[] = []
    const { outputs, home, partials } = roomOf({
      guardedFetch: async ({ url }) => {
        let given = 0
        const body = new ReadableStream<Uint8Array>(
          {
            pull(controller) {
              const [name = ''] = partials()
              const written = statSync(join(home, 'outputs/.partial', name, 'data')).size
              if (written !== given * piece.length) late.push(given)
              if (given++ < pieces) controller.enqueue(piece)
              else controller.close()
            },
          },
          { highWaterMark: 0 },
        )
        return { status: 200, headers: new Headers({ 'content-type': 'video/mp4' }), url, body }
      },
    })
    const source = { url: 'https://files.example.com/a', private_addresses: false }
    expect(await outputs.copy('task_1/0', source, soon())).toMatchObject({ output: { bytes: pieces * piece.length } })
    expect(late).toEqual([])
  })
})

describe('a crash', () => {
  /** Copies in a separate process, which is killed when the server has sent `hangAfter` bytes and they are on the disk. */
  async function crash(home: string, url: string, enough: number): Promise<void> {
    const from = join(import.meta.dir, '../src')
    const code = `
      const { createOutputs } = await import('${from}/outputs/create-outputs.ts')
      const { createDirectory } = await import('${from}/outputs/directory.ts')
      const { createGuardedFetch } = await import('${from}/kit/guarded-fetch.ts')
      const { systemClock: clock } = await import('${from}/kit/clock.ts')
      const quiet = () => {}
      const log = { debug: quiet, info: quiet, warn: quiet, error: quiet, flush: quiet }
      const outputs = createOutputs({
        files: createDirectory({ directory: '${home}/outputs' }), guardedFetch: createGuardedFetch({ clock }),
        secret: 's', settings: () => ({ link_hours: 24, max_bytes: 1e9 }), clock, log,
        partial_directory: '${home}/outputs/.partial', checkpoint_bytes: ${CHECKPOINT},
      })
      await outputs.copy('task_1/0', { url: '${url}', private_addresses: true },
        { until_ms: Date.now() + 60000, signal: new AbortController().signal })`
    const child = Bun.spawn([process.execPath, '-e', code], { stdout: 'ignore', stderr: 'inherit' })
    const written = () => {
      const path = join(home, 'outputs/.partial')
      const [name] = existsSync(path) ? readdirSync(path) : []
      return name && existsSync(join(path, name, 'data')) ? statSync(join(path, name, 'data')).size : 0
    }
    while (written() < enough) await new Promise((resolve) => setTimeout(resolve, 5))
    child.kill('SIGKILL')
    await child.exited
  }

  test('during a copy keeps the received bytes, and the next call resumes from there', async () => {
    const bytes = video(LONG)
    const { outputs, home, partials } = roomOf()
    const vendor = vendorOf(file(bytes, { hangAfter: 100_000 }), file(bytes))
    await crash(home, sourceOf(vendor).url, 100_000)
    expect(await outputs.open('task_1/0')).toBeUndefined()
    expect(await outputs.copy('task_1/0', sourceOf(vendor), soon())).toMatchObject({ done: true })
    // Only the synced bytes count.
    const safe = Math.floor(100_000 / CHECKPOINT) * CHECKPOINT
    expect(vendor.requests[1]?.headers.range).toBe(`bytes=${safe}-`)
    expect(await bytesOf(outputs)).toEqual(bytes)
    expect(partials()).toEqual([])
  })

  test('leaves the partial file of a living process to it', async () => {
    const bytes = video(LONG)
    const slow = roomOf()
    const vendor = vendorOf(file(bytes, { hangAfter: 100_000 }), file(bytes))
    const aborting = new AbortController()
    const first = slow.outputs
      .copy('task_1/0', sourceOf(vendor), { ...soon(), signal: aborting.signal })
      .catch(() => 'left')
    await taken(100_000)
    const other = roomOf({ root: slow.home }).outputs
    await other.copy('task_1/0', sourceOf(vendor), soon())
    expect(vendor.requests[1]?.headers.range).toBeUndefined()
    aborting.abort()
    expect(await first).toBe('left')
    expect(await bytesOf(other)).toEqual(bytes)
  })

  test('counts a process on another machine that has not written for two minutes as dead', async () => {
    const bytes = video(LONG)
    const { outputs, home, partials } = roomOf()
    const vendor = vendorOf(file(bytes, { cutAfter: 100_000 }), file(bytes), file(bytes))
    await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
    const at = (name = '') => join(home, 'outputs/.partial', name)
    const [ready = ''] = partials()
    const foreign = `${ready.replace('.ready', '')}@elsewhere~1~1~abcdef`
    renameSync(at(ready), at(foreign))
    const touched = (secondsAgo: number) => {
      const time = Date.now() / 1000 - secondsAgo
      utimesSync(at(`${foreign}/data`), time, time)
    }
    touched(100)
    await outputs.copy('task_1/0', sourceOf(vendor), soon())
    expect(vendor.requests[1]?.headers.range).toBeUndefined()
    await outputs.remove('task_1/0')
    touched(140)
    await outputs.copy('task_1/0', sourceOf(vendor), soon())
    expect(vendor.requests[2]?.headers.range).toBe(`bytes=${Math.floor(100_000 / CHECKPOINT) * CHECKPOINT}-`)
    expect(await bytesOf(outputs)).toEqual(bytes)
  })

  test('leaves partial files that are removed after a day', async () => {
    const { outputs, home, partials } = roomOf()
    const vendor = vendorOf()
    vendor.otherwise(file(video(LONG), { cutAfter: 100_000 }))
    for (const key of ['task_1/0', 'task_2/0']) await errorOf(outputs.copy(key, sourceOf(vendor), soon()))
    const [one = '', two = ''] = partials()
    const time = Date.now() / 1000 - 86_400
    utimesSync(join(home, 'outputs/.partial', one, 'data'), time - 10, time - 10)
    utimesSync(join(home, 'outputs/.partial', two, 'data'), time + 10, time + 10)
    expect(await outputs.removeLeftovers()).toBe(1)
    expect(partials()).toEqual([two])
  })
})

describe('a response that is not a file', () => {
  const GONE: [number, string][] = [
    [404, 'output_gone'],
    [410, 'output_gone'],
    [403, 'output_gone'],
    [401, 'bad_upstream_response'],
    [500, 'bad_upstream_response'],
    [503, 'server_is_overloaded'],
    [429, 'server_is_overloaded'],
    [204, 'bad_upstream_response'],
    [304, 'bad_upstream_response'],
  ]
  for (const [status, code] of GONE) {
    test(`with ${status} is ${code}, and the received bytes are kept`, async () => {
      const bytes = video(LONG)
      const { outputs } = roomOf()
      const vendor = vendorOf(
        file(bytes, { cutAfter: 100_000 }),
        failure(status, {}, { 'retry-after': '7' }),
        file(bytes),
      )
      await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
      const error = await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
      expect(error.code).toBe(code as GatewayError['code'])
      expect(error.detail.upstream_status).toBe(status)
      if (code === 'server_is_overloaded') expect(error.detail.retry_after).toBe(7)
      expect(error.message).not.toContain('secret')
      await outputs.copy('task_1/0', sourceOf(vendor), soon())
      expect(vendor.requests[2]?.headers.range).toBe('bytes=100000-')
      expect(await bytesOf(outputs)).toEqual(bytes)
    })
  }

  test('such as a page or a JSON document instead of a video is temporary, and is not stored', async () => {
    for (const type of ['text/html; charset=utf-8', 'application/json', 'application/problem+json']) {
      const { outputs, partials } = roomOf()
      const vendor = vendorOf(whole('{"error":"try again"}', { headers: { 'content-type': type } }))
      const error = await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))
      expect(error.code).toBe('bad_upstream_response')
      expect(error.message).toContain(type.split(';')[0] ?? '')
      expect(partials()).toEqual([])
    }
  })

  test('such as an empty or compressed file is temporary', async () => {
    const { outputs } = roomOf()
    const vendor = vendorOf(
      file(new Uint8Array()),
      whole('xx', { headers: { 'content-encoding': 'gzip', 'content-type': 'video/mp4' } }),
    )
    expect((await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))).message).toContain('empty')
    expect((await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))).message).toContain('gzip')
    expect(await outputs.open('task_1/0')).toBeUndefined()
  })

  test('of exactly the size limit is stored, one byte more is refused, announced or not', async () => {
    for (const length of [true, false]) {
      const exact = roomOf({ max_bytes: 5000 })
      await exact.outputs.copy('task_1/0', sourceOf(vendorOf(file(video(5000), { length }))), soon())
      expect((await bytesOf(exact.outputs))?.length).toBe(5000)

      const over = roomOf({ max_bytes: 4999 })
      const error = await errorOf(
        over.outputs.copy('task_1/0', sourceOf(vendorOf(file(video(5000), { length }))), soon()),
      )
      expect(error.code).toBe('output_refused')
      expect(error.message).toContain('4999')
      expect(await over.outputs.open('task_1/0')).toBeUndefined()
      expect(over.partials()).toEqual([])
    }
  })

  test('from a private address is refused unless the provider or its own origin allows it', async () => {
    const { outputs } = roomOf()
    const vendor = vendorOf()
    vendor.otherwise(file(video(100)))
    const closed = sourceOf(vendor, { private_addresses: false })
    expect((await errorOf(outputs.copy('task_1/0', closed, soon()))).code).toBe('output_refused')
    const elsewhere = { ...closed, own_origin: `http://127.0.0.1:${vendor.port + 1}` }
    expect((await errorOf(outputs.copy('task_1/0', elsewhere, soon()))).code).toBe('output_refused')
    expect(vendor.accepted()).toBe(0)
    expect(await outputs.copy('task_1/0', { ...closed, own_origin: vendor.origin }, soon())).toMatchObject({
      done: true,
    })
  })

  test('or an unreachable server is temporary', async () => {
    const { outputs } = roomOf()
    const vendor = startVendor()
    await vendor.stop()
    expect((await errorOf(outputs.copy('task_1/0', sourceOf(vendor), soon()))).code).toBe('upstream_cut')
  })
})

describe('a broken file', () => {
  const error = Buffer.from('{"error":"disk is full now"}')
  const half = video(LONG).subarray(0, LONG / 2)
  const TASK = { family_type: 'video/mp4' }
  const broken: [name: string, bytes: Uint8Array, options: FileOptions, source: Partial<CopySource>][] = [
    ['an error text labelled as a video', error, {}, {}],
    ['an error text that the provider calls a video', error, { type: null }, { content_type: 'video/mp4' }],
    ['an error text without a label', error, { type: 'application/octet-stream' }, TASK],
    ['an error text labelled as text', Buffer.from('no video today'), { type: 'text/plain' }, TASK],
    ['half a file in a body that ends cleanly', half, { length: false }, TASK],
    ['half a file with the length of the half', half, {}, TASK],
    ['a movie without its index', video(LONG).fill(0x66, 28, 32), {}, TASK],
    ['an error text instead of a model', error, { type: 'text/plain' }, { content_type: 'model/obj' }],
    ['an error text instead of an archive', Buffer.from('no'), { type: null }, { content_type: 'application/zip' }],
  ]
  test.each(broken)('is not stored: %s', async (_, bytes, options, more) => {
    const { outputs, partials } = roomOf()
    const good = video(LONG)
    const vendor = vendorOf(file(bytes, options), file(good))
    const { code, message, detail } = await errorOf(outputs.copy('task_1/0', sourceOf(vendor, more), soon()))
    expect([code, detail.fail_code]).toEqual(['bad_upstream_response', 'output_invalid'])
    expect(message).toStartWith("The provider's file is broken: it ")
    expect(await outputs.open('task_1/0')).toBeUndefined()
    expect(partials()).toEqual([])
    // The next attempt starts anew, and the whole file is stored.
    expect(await outputs.copy('task_1/0', sourceOf(vendor, more), soon())).toMatchObject({ done: true })
    expect(vendor.requests[1]?.headers.range).toBeUndefined()
    expect(await bytesOf(outputs)).toEqual(good)
  })

  test.each([
    ['half a file', half],
    ['an error text', error],
  ])('is not stored if its bytes came with a response: %s', async (_, bytes) => {
    const { outputs, partials } = roomOf()
    const body = new Blob([bytes as BlobPart]).stream()
    const work = outputs.keep('task_1/0', { content_type: 'video/mp4', body }, new AbortController().signal)
    expect((await errorOf(work)).detail.fail_code).toBe('output_invalid')
    expect([await outputs.open('task_1/0'), partials()]).toEqual([undefined, []])
  })
})

describe('the content type', () => {
  const rows: [given: string | null, declared: string | undefined, expected: string][] = [
    ['video/webm', 'video/mp4', 'video/mp4'],
    ['application/octet-stream', 'video/webm', 'video/mp4'],
    ['video/mp4, text/html', undefined, 'video/mp4'],
    ['application/octet-stream', undefined, 'video/mp4'],
    ['binary/octet-stream', 'application/octet-stream', 'video/mp4'],
    [null, undefined, 'video/mp4'],
    [null, 'model/gltf-binary', 'video/mp4'],
  ]
  const unknown: [given: string | null, declared: string | undefined, expected: string][] = [
    ['video/mp4, text/html', undefined, 'application/octet-stream'],
    ['image/svg+xml', 'image/svg+xml', 'application/octet-stream'],
    ['application/pdf', undefined, 'application/octet-stream'],
    ['model/obj', undefined, 'model/obj'],
    ['text/plain', 'model/stl', 'model/stl'],
  ]
  for (const [type, content_type, expected] of unknown) {
    test(`of undetectable bytes is ${expected} when the server reports ${type} and the provider ${content_type}`, async () => {
      const { outputs } = roomOf()
      const html = Buffer.from('# a <svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
      const source = sourceOf(vendorOf(file(html, { type })), content_type ? { content_type } : {})
      expect(await outputs.copy('task_1/0', source, soon())).toMatchObject({ output: { content_type: expected } })
      const kept = await outputs.keep(
        'task_1/1',
        { content_type: content_type ?? 'text/html', body: new Blob([html]).stream() },
        new AbortController().signal,
      )
      expect(kept.content_type).toBe(content_type === undefined ? 'application/octet-stream' : expected)
      expect(await new Response((await outputs.open('task_1/1'))?.body()).text()).toBe(html.toString())
    })
  }
  for (const [type, content_type, expected] of rows) {
    test(`is ${expected} when the server reports ${type} and the provider ${content_type}`, async () => {
      const { outputs } = roomOf()
      const source = sourceOf(vendorOf(file(video(100), { type })), content_type ? { content_type } : {})
      expect(await outputs.copy('task_1/0', source, soon())).toMatchObject({ output: { content_type: expected } })
      expect((await outputs.open('task_1/0'))?.content_type).toBe(expected)
    })
  }
})

describe('storing bytes', () => {
  const bodyOf = (bytes: Uint8Array) => new Blob([bytes as BlobPart]).stream()
  const { signal } = new AbortController()

  test('stores them under their key, and replaces an existing file', async () => {
    const { outputs } = roomOf()
    for (const seed of [1, 2]) {
      const bytes = video(LONG, seed)
      const kept = await outputs.keep('task_1/0', { content_type: 'video/mp4', body: bodyOf(bytes) }, signal)
      expect(kept).toEqual({ key: 'task_1/0', content_type: 'video/mp4', bytes: LONG })
      expect(await bytesOf(outputs)).toEqual(bytes)
    }
  })

  test('refuses too many or none, and keeps the existing file', async () => {
    const { outputs } = roomOf({ max_bytes: 5000 })
    const keep = (length: number) =>
      outputs.keep('task_1/0', { content_type: 'video/mp4', body: bodyOf(video(length)) }, signal)
    await keep(5000)
    expect((await errorOf(keep(5001))).code).toBe('output_refused')
    expect((await errorOf(keep(0))).code).toBe('bad_upstream_response')
    expect((await bytesOf(outputs))?.length).toBe(5000)
  })
})

/** A part from `first` on, whether it was requested or not. */
function part(bytes: Uint8Array, first: number, { etag }: { etag?: string }): Answer {
  return (wire) => {
    const tag = etag === undefined ? '' : `etag: ${etag}\r\n`
    const range = `bytes ${first}-${bytes.length - 1}/${bytes.length}`
    const head = `HTTP/1.1 206 Partial Content\r\ncontent-range: ${range}\r\ncontent-length: ${bytes.length - first}\r\n${tag}\r\n`
    return wire.write(Buffer.concat([Buffer.from(head), bytes.subarray(first)]))
  }
}
