/** The `openai` package's `videos`, this major and the one before it, and plain HTTP for the files, over a real port. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import OpenAI, { toFile } from 'openai'
import OpenAI6 from 'openai-6'
import { openPort, type Port } from './kit/served.ts'
import { TINY_MP4 } from './kit/tiny-files.ts'
import { startVideoVendor, type VideoVendor } from './kit/video-vendor.ts'

// One test for both: the methods used here have the same types in both majors, which TypeScript cannot know.
const MAJORS = { 'openai 7': OpenAI, 'openai 6': OpenAI6 as unknown as typeof OpenAI }

/** Larger than all buffers between client and gateway. */
const FILE = new Uint8Array(24 * 1024 * 1024).fill(7)
FILE.set(TINY_MP4)
// The last box of the tiny file extends to the end of this one.
new DataView(FILE.buffer).setUint32(TINY_MP4.length - 8, FILE.length - TINY_MP4.length + 8)
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

let vendor: VideoVendor
let far: Port
let near: Port
const FAMILIES = { families: ['video-generation' as const, 'chatcompat-video' as const] }

beforeAll(async () => {
  vendor = startVideoVendor({ file: FILE, end: (prompt) => (prompt.includes('fail') ? 'failed' : 'completed') })
  far = await openPort({ tasks: { ...FAST } })
  near = await openPort({
    tasks: { ...FAST },
    providers: {
      v: { kind: 'chatcompat-video', base_url: vendor.url },
      far: { kind: 'chatcompat-video', base_url: far.url, key: far.token, options: { cancel: 'post', api: 'videos' } },
    },
    models: {
      'v/film': { ...FAMILIES, video: { duration: { values: [4, 8] }, size: { values: ['720p'] } } },
      'far/film': { ...FAMILIES, targets: [{ provider: 'far', model: 'sandbox/text-to-video' }] },
    },
  })
})
beforeEach(() => {
  near.requests.length = 0
})
afterAll(async () => {
  await near.close()
  await far.close()
  await vendor.stop()
})

const FAST = {
  deadline_minutes: 1,
  copy_deadline_minutes: 1,
  poll_seconds: 0.2,
  slow_poll_seconds: 1,
  concurrency: 8,
  callback_origins: [],
}

type Video = OpenAI.Video
type Create = OpenAI.VideoCreateParams

for (const [name, Major] of Object.entries(MAJORS)) {
  describe(name, () => {
    const client = (key = near.token) => new Major({ baseURL: near.url, apiKey: key })
    const create = (more: object = {}) =>
      client().videos.create({ model: 'v/film', prompt: 'A boat', ...more } as unknown as Create)

    async function ended(id: string): Promise<Video> {
      for (let attempt = 0; attempt < 20; attempt++) {
        const video = await client().videos.retrieve(id, { query: { wait: 10 } })
        if (video.status === 'completed' || video.status === 'failed') return video
      }
      throw new Error('It never ended.')
    }

    async function refused(work: Promise<unknown>) {
      const error = await work.then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (!(error instanceof Major.APIError)) throw new Error('It was not refused.', { cause: error })
      const { status, code, param, type } = error
      return { kind: error.constructor.name, status, code, param, type }
    }

    test('a video is created, polled, downloaded and deleted', async () => {
      const video = await create({ seconds: '8', size: '720x1280' })
      expect(near.requests[0]?.headers.get('content-type')).toStartWith('multipart/form-data')
      expect(video).toMatchObject({
        object: 'video',
        model: 'v/film',
        status: 'queued',
        progress: 0,
        prompt: 'A boat',
        seconds: '8',
        size: '720x1280',
        completed_at: null,
        error: null,
        remixed_from_video_id: null,
      })
      const done = await ended(video.id)
      expect(done).toMatchObject({ id: video.id, status: 'completed', progress: 100 })
      expect(done.completed_at).toBeGreaterThanOrEqual(done.created_at)
      expect(done.expires_at).toBeGreaterThan(done.completed_at ?? 0)

      const file = await client().videos.downloadContent(video.id)
      expect(file.headers.get('content-type')).toBe('video/mp4')
      expect(file.headers.get('content-length')).toBe(String(FILE.length))
      expect(Buffer.compare(Buffer.from(await file.arrayBuffer()), FILE)).toBe(0)

      expect(await client().videos.delete(video.id)).toMatchObject({
        id: video.id,
        object: 'video.deleted',
        deleted: true,
      })
      expect(await refused(client().videos.retrieve(video.id))).toMatchObject({
        kind: 'NotFoundError',
        code: 'task_not_exist',
      })
    })

    test('the list has pages in both orders', async () => {
      const lister = client(await near.tokenFor(['*']))
      const ids: string[] = []
      for (let i = 0; i < 3; i++) {
        ids.push((await lister.videos.create({ model: 'v/film', prompt: 'A boat' } as unknown as Create)).id)
      }
      near.requests.length = 0
      const seen: string[] = []
      for await (const { id } of lister.videos.list({ limit: 2 })) seen.push(id)
      expect(seen.toSorted()).toEqual(ids.toSorted())
      expect(near.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /v1/videos', 'GET /v1/videos'])
      const oldest = await lister.videos.list({ order: 'asc' })
      expect(oldest.data.map(({ id }) => id)).toEqual(seen.toReversed())
    })

    test('a reference may be a file or a URL in the request', async () => {
      const file = await toFile(PNG, 'first.png', { type: 'image/png' })
      expect((await ended((await create({ input_reference: file })).id)).status).toBe('completed')
      const image_url = `data:image/png;base64,${PNG.toString('base64')}`
      expect((await create({ input_reference: { image_url } })).status).toBe('queued')
    })

    test('a failure is an error of the video', async () => {
      const video = await ended((await create({ prompt: 'fail' })).id)
      expect(video).toMatchObject({
        status: 'failed',
        error: { code: 'generation_failed', message: expect.any(String) },
      })
      expect(await refused(client().videos.downloadContent(video.id))).toMatchObject({
        kind: 'NotFoundError',
        code: 'output_not_found',
      })
    })

    test.each<[object, string, number, string, string]>([
      [{ seconds: '5' }, 'BadRequestError', 400, 'invalid_value', 'seconds'],
      [{ size: '1792x1024' }, 'BadRequestError', 400, 'invalid_value', 'size'],
      [{ prompt: '' }, 'BadRequestError', 400, 'missing_required_parameter', 'prompt'],
      [{ model: 'v/nothing' }, 'NotFoundError', 404, 'model_not_found', 'model'],
      [
        { input_reference: { file_id: 'file_1' } },
        'BadRequestError',
        400,
        'unsupported_parameter',
        'input_reference.file_id',
      ],
    ])('%j is a %s', async (more, kind, status, code, param) => {
      expect(await refused(create(more))).toEqual({ kind, status, code, param, type: 'invalid_request_error' })
      expect(near.requests).toHaveLength(1)
    })

    test('a video that is not ready is neither deleted nor downloaded, and not retried', async () => {
      const { id } = await create({ model: 'far/film', prompt: 'A boat\n@sandbox hang=1' })
      near.requests.length = 0
      expect(await refused(client().videos.delete(id))).toMatchObject({ kind: 'ConflictError', code: 'task_not_ended' })
      expect(await refused(client().videos.downloadContent(id))).toMatchObject({
        kind: 'NotFoundError',
        code: 'output_not_found',
      })
      expect(near.requests).toHaveLength(2)
      await fetch(`${near.url}/video/generations/${id}/cancel`, { method: 'POST', headers: bearer() })
      expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'canceled' } })
    })

    test("another token's videos are not found", async () => {
      const { id } = await create()
      const other = client(await near.tokenFor(['*']))
      expect(await refused(other.videos.retrieve(id))).toMatchObject({ kind: 'NotFoundError', code: 'task_not_exist' })
      expect((await other.videos.list()).data).toEqual([])
    })
  })
}

const bearer = () => ({ authorization: `Bearer ${near.token}` })

/** The link to a finished file. */
async function finished(order: object = { model: 'v/film', prompt: 'A boat' }): Promise<string> {
  const headers = { ...bearer(), 'content-type': 'application/json' }
  const created = await fetch(`${near.url}/video/generations`, { method: 'POST', headers, body: JSON.stringify(order) })
  const { data } = (await created.json()) as { data: { task_id: string } }
  for (let attempt = 0; attempt < 20; attempt++) {
    const answer = await fetch(`${near.url}/video/generations/${data.task_id}?wait=10`, { headers: bearer() })
    const state = (await answer.json()) as { data: { status: string; result_url?: string; fail_reason: string } }
    if (state.data.result_url) return state.data.result_url
    if (state.data.status === 'FAILURE') throw new Error(state.data.fail_reason)
  }
  throw new Error('It never ended.')
}

describe('an output link, by plain HTTP', () => {
  test('returns the file, whole or in ranges, with correct lengths', async () => {
    const link = await finished()
    expect(link).toStartWith(near.url)
    const head = await fetch(link, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(FILE.length)])
    const whole = await fetch(link)
    expect([whole.status, whole.headers.get('content-length')]).toEqual([200, String(FILE.length)])
    expect((await whole.arrayBuffer()).byteLength).toBe(FILE.length)
    const part = await fetch(link, { headers: { range: 'bytes=4-11' } })
    expect([part.status, await part.text()]).toEqual([206, 'ftypisom'])
    expect(part.headers.get('content-range')).toBe(`bytes 4-11/${FILE.length}`)
    expect(part.headers.get('content-length')).toBe('8')
    const end = await fetch(link, { headers: { range: 'bytes=-3' } })
    expect(new Uint8Array(await end.arrayBuffer())).toEqual(new Uint8Array([7, 7, 7]))
    for (const headers of [{ range: 'bytes=0-1', 'if-range': '"another"' }, { range: 'bytes=0-1,4-5' }]) {
      const all = await fetch(link, { headers })
      expect([all.status, (await all.arrayBuffer()).byteLength]).toEqual([200, FILE.length])
    }
    const etag = head.headers.get('etag') ?? ''
    expect((await fetch(link, { headers: { range: 'bytes=0-1', 'if-range': etag } })).status).toBe(206)
    expect((await fetch(link, { headers: { 'if-none-match': etag } })).status).toBe(304)
    expect((await fetch(link, { headers: { range: `bytes=${FILE.length}-` } })).status).toBe(416)
    expect((await fetch(link.replace(/signature=./, 'signature=_'))).status).toBe(403)
    for (const again of ['expires=9999999999', 'index=0&index=0', 'signature=x']) {
      expect((await fetch(`${link}&${again}`)).status).toBe(403)
      expect((await fetch(link.replace('?', `?${again}&`))).status).toBe(403)
    }
    expect((await fetch(link.split('?')[0] ?? '')).status).toBe(401)
  })

  test('is not read faster than the client reads, and not at all after it has disconnected', async () => {
    const { hostname, port, pathname, search } = new URL(await finished())
    const before = process.memoryUsage.rss()
    const sockets = Array.from({ length: 8 }, () => {
      const socket = connect(Number(port), hostname)
      socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`)
      return socket
    })
    for (const socket of sockets) {
      await new Promise<void>((resolve) => socket.once('data', () => resolve()))
      socket.pause()
    }
    // Eight files would be 192 MiB.
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024)
    for (const socket of sockets) socket.destroy()
    expect((await fetch(`${near.url}/models`, { headers: bearer() })).status).toBe(200)
  })
})

test('a gateway behind a gateway generates a video', async () => {
  const link = await finished({
    model: 'far/film',
    prompt: 'A paper boat\n@sandbox quick=1',
    duration: 4,
    size: '720p',
  })
  const bytes = new Uint8Array(await (await fetch(link)).arrayBuffer())
  expect(Buffer.from(bytes.subarray(4, 8)).toString()).toBe('ftyp')
  expect(bytes.length).toBeGreaterThan(1_000)
}, 120_000)
