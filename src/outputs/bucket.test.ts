import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'
import { freeBytes } from '../kit/free-bytes.ts'
import { streamOf } from '../kit/stream-of.ts'
import { createBucket } from './bucket.ts'

/**
 * A whole S3 service on loopback (the package `s3rver`, whose one account is S3RVER). It checks the account, not the
 * signature, and treats the range 0-0 as the whole file.
 */
const home = mkdtempSync(join(tmpdir(), 'gatehouse-bucket-'))
const service = new S3rver({
  address: '127.0.0.1',
  port: 0,
  silent: true,
  directory: home,
  configureBuckets: [{ name: 'videos', configs: [] }],
})
let endpoint = ''
beforeAll(async () => {
  endpoint = `http://127.0.0.1:${(await service.run()).port}`
})
afterAll(async () => {
  await service.close()
  rmSync(home, { recursive: true, force: true })
})

const servers: { stop(now: boolean): unknown }[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true)
})

const account = { access_key_id: 'S3RVER', secret_access_key: 'S3RVER' }
const filesOf = (more: { prefix?: string; endpoint?: string } = {}) =>
  createBucket({ s3: { bucket: 'videos', endpoint, ...account, ...more } })

const { signal } = new AbortController()
const MEBIBYTE = 1024 * 1024

/** Chunks of one mebibyte, each filled with its number, created on demand. */
function pieces(count: number, { failing = false, asked = () => {} } = {}): ReadableStream<Uint8Array> {
  let made = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        asked()
        if (made < count) controller.enqueue(new Uint8Array(MEBIBYTE).fill(made++ + 1))
        else if (failing) controller.error(new Error('the source broke off'))
        else controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}
const bytesOf = async (body: ReadableStream<Uint8Array> | undefined) =>
  new Uint8Array(await new Response(body ?? null).arrayBuffer())

describe('a bucket', () => {
  test('stores a small file and one of several parts, with their types and lengths', async () => {
    const files = filesOf()
    for (const [key, count] of [
      ['task_1/0', 1],
      ['task_2/0', 19],
    ] as const) {
      const written = await files.write(key, { content_type: 'video/mp4', body: pieces(count) }, signal)
      expect(written).toEqual({ bytes: count * MEBIBYTE })
      const stored = await files.open(key)
      expect(stored).toMatchObject({ content_type: 'video/mp4', bytes: count * MEBIBYTE })
      expect(stored?.version).toMatch(/^[\w-]+$/)
      const bytes = await bytesOf(stored?.body())
      expect(bytes.length).toBe(count * MEBIBYTE)
      for (let piece = 0; piece < count; piece++) expect(bytes[piece * MEBIBYTE]).toBe(piece + 1)
    }
  })

  test('returns any range of a file', async () => {
    const files = filesOf()
    await files.write('task_3/0', { content_type: 'text/plain', body: new Blob(['0123456789']).stream() }, signal)
    const stored = await files.open('task_3/0')
    for (const [first, last, expected] of [
      [0, 1, '01'],
      [3, 5, '345'],
      [9, 9, '9'],
      [0, 9, '0123456789'],
    ] as const)
      expect(await new Response(stored?.body({ first, last })).text()).toBe(expected)
  })

  test('replaces a file, removes it, and ignores a missing one', async () => {
    const files = filesOf()
    const write = (text: string) =>
      files.write('task_4/0', { content_type: 'a/b', body: new Blob([text]).stream() }, signal)
    await write('one')
    const first = (await files.open('task_4/0'))?.version
    await write('two')
    expect((await files.open('task_4/0'))?.version).not.toBe(first as string)
    await files.remove('task_4/0')
    expect(await files.open('task_4/0')).toBeUndefined()
    await files.remove('task_4/0')
  })

  test('prepends its prefix to every key', async () => {
    await filesOf({ prefix: 'gatehouse/' }).write('task_5/0', { content_type: 'a/b', body: pieces(1) }, signal)
    expect(await filesOf().open('gatehouse/task_5/0')).toBeDefined()
    expect(await filesOf().open('task_5/0')).toBeUndefined()
  })

  test('rejects a key that leads elsewhere', async () => {
    await expect(filesOf().open('../other/0')).rejects.toThrow('not a valid file key')
    await expect(filesOf().write('/a', { content_type: 'a/b', body: pieces(1) }, signal)).rejects.toThrow(
      'not a valid file key',
    )
  })

  test('reports a rejected account as an error, not as a missing file', async () => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(null, { status: 403 }) })
    servers.push(server)
    const files = filesOf({ endpoint: `http://127.0.0.1:${server.port}` })
    await expect(files.open('task_1/0')).rejects.toThrow()
    await expect(files.remove('task_1/0')).rejects.toThrow()
    await expect(files.write('task_6/0', { content_type: 'a/b', body: pieces(1) }, signal)).rejects.toThrow()
  })

  test('fails the reader when the file is removed before it is read', async () => {
    const files = filesOf()
    await files.write('task_9/0', { content_type: 'a/b', body: pieces(1) }, signal)
    const stored = await files.open('task_9/0')
    await files.remove('task_9/0')
    await expect(bytesOf(stored?.body())).rejects.toThrow('HTTP 404')
  })

  test('shows nothing of a write whose source failed, whether small or of several parts', async () => {
    const files = filesOf()
    for (const [key, count] of [
      ['task_7/0', 2],
      ['task_8/0', 19],
    ] as const) {
      const write = files.write(key, { content_type: 'a/b', body: pieces(count, { failing: true }) }, signal)
      await expect(write).rejects.toThrow('broke off')
      expect(await files.open(key)).toBeUndefined()
    }
    expect(readdirSync(join(home, 'videos')).some((name) => name.startsWith('task_8'))).toBe(false)
  })
})

describe('an upload', () => {
  /** Records its requests, and can delay parts. */
  function recorder() {
    const seen: string[] = []
    const unsigned: string[] = []
    let hold: Promise<void> | undefined
    const woken: (() => void)[] = []
    const began: (string | null)[][] = []
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { searchParams } = new URL(request.url)
        await request.arrayBuffer()
        const kind = `${request.method} ${searchParams.get('partNumber') ?? (searchParams.has('uploads') ? 'begin' : 'end')}`
        seen.push(kind)
        if (kind === 'POST begin') {
          began.push(['content-type', 'content-disposition'].map((name) => request.headers.get(name)))
        }
        if (!/^AWS4-HMAC-SHA256 Credential=S3RVER\//.test(request.headers.get('authorization') ?? ''))
          unsigned.push(kind)
        for (const wake of woken.splice(0)) wake()
        if (request.method === 'PUT') {
          await hold
          return new Response('', { headers: { etag: '"part"' } })
        }
        if (request.method === 'DELETE') return new Response(null, { status: 204 })
        const root = searchParams.has('uploads') ? 'InitiateMultipartUploadResult' : 'CompleteMultipartUploadResult'
        const xml = `<?xml version="1.0"?><${root}><UploadId>one</UploadId><ETag>"x"</ETag></${root}>`
        return new Response(xml, { headers: { 'content-type': 'application/xml' } })
      },
    })
    servers.push(server)
    return {
      files: filesOf({ endpoint: `http://127.0.0.1:${server.port}` }),
      seen,
      began,
      unsigned,
      async until(kind: string) {
        while (!seen.includes(kind)) await new Promise<void>((resolve) => woken.push(resolve))
      },
      holdBack(until: Promise<void>) {
        hold = until
      },
    }
  }

  test('stores the content type and the disposition for browsers', async () => {
    const { files, began } = recorder()
    for (const content_type of ['video/mp4', 'model/obj', 'video/mp4, text/html']) {
      await files.write('task_1/0', { content_type, body: pieces(16) }, signal)
    }
    expect(began).toEqual([
      ['video/mp4', 'inline'],
      ['model/obj', 'attachment'],
      ['application/octet-stream', 'attachment'],
    ])
  })

  test('holds one part in memory: the source waits while a part is being sent', async () => {
    const { files, seen, unsigned, until, holdBack } = recorder()
    const held = Promise.withResolvers<void>()
    holdBack(held.promise)
    let asked = 0
    const body = pieces(40, { asked: () => void asked++ })
    const writing = files.write('task_1/0', { content_type: 'video/mp4', body }, signal)
    await until('PUT 1')
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(asked).toBeLessThanOrEqual(17)
    held.resolve()
    expect(await writing).toEqual({ bytes: 40 * MEBIBYTE })
    expect(seen).toEqual(['POST begin', 'PUT 1', 'PUT 2', 'PUT 3', 'PUT 4', 'PUT 5', 'POST end'])
    expect(unsigned).toEqual([])
  })

  test('is aborted when its source fails', async () => {
    const { files, seen, until } = recorder()
    const body = pieces(19, { failing: true })
    await expect(files.write('task_1/0', { content_type: 'a/b', body }, signal)).rejects.toThrow('broke off')
    await until('DELETE end')
    expect(seen).toEqual(['POST begin', 'PUT 1', 'PUT 2', 'DELETE end'])
  })

  test('ends at once and is aborted when its signal is aborted, even while a part is being sent', async () => {
    const { files, seen, until, holdBack } = recorder()
    const held = Promise.withResolvers<void>()
    holdBack(held.promise)
    const aborting = new AbortController()
    const writing = files.write('task_1/0', { content_type: 'a/b', body: pieces(40) }, aborting.signal)
    await until('PUT 1')
    const reason = new Error('enough')
    aborting.abort(reason)
    expect(await writing.catch((error: unknown) => error)).toBe(reason)
    held.resolve()
    await until('DELETE end')
    expect(seen).not.toContain('POST end')
    const never = files.write('task_1/0', { content_type: 'a/b', body: pieces(1) }, AbortSignal.abort(reason))
    expect(await never.catch((error: unknown) => error)).toBe(reason)
  })
})

test('stores the bytes of a source that frees each piece with the next one', async () => {
  const pieceOf = (at: number) => Buffer.from(new Uint8Array(65_536).fill(at % 251).buffer)
  const hash = new Bun.CryptoHasher('sha256')
  async function* pieces() {
    for (let at = 0; at < 320; at++) {
      const piece = pieceOf(at)
      hash.update(piece)
      yield piece
      freeBytes(piece)
    }
  }
  const files = filesOf()
  await files.write('freed', { content_type: 'x/y', body: streamOf(pieces()) }, signal)
  const found = new Bun.CryptoHasher('sha256')
  for await (const piece of (await files.open('freed'))?.body() ?? []) found.update(piece)
  expect(found.digest('hex')).toBe(hash.digest('hex'))
}, 120_000)
