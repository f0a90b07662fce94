import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BufferSource, EncodedPacketSink, Input, MP4 } from 'mediabunny'
import type { SandboxOrdersParts } from '../packages/sandbox/src/orders.ts'
import { findFfmpeg } from '../packages/sandbox/src/render/ffmpeg.ts'
import { createRenderWorkers } from '../packages/sandbox/src/render/workers.ts'
import { createTemporaryFiles } from '../packages/sandbox/src/temporary-files.ts'
import { createSandboxVideo } from '../packages/sandbox/src/video.ts'
import type { TaskProgress, VideoCall } from '../src/providers/provider.ts'
import { simulatedErrors } from '../src/providers/sandbox.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Json } from '../src/spec/task.ts'
import type { VideoOrder } from '../src/spec/video-request.ts'
import { manualClock } from './kit/clock.ts'

const signal = new AbortController().signal
const ffmpeg = await findFfmpeg(process.env)

const leave: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const work of leave.splice(0).reverse()) await work()
})

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-video-test-'))
  leave.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const clock = manualClock()
type SandboxVideo = ReturnType<typeof createSandboxVideo>
const errors = simulatedErrors({ id: 'sandbox', clock })

/** A new sandbox, which renders with the npm packages unless a test requests ffmpeg. */
function open(parts: Partial<SandboxOrdersParts> & { use_ffmpeg?: boolean } = {}): SandboxVideo {
  const { use_ffmpeg = false, ...rest } = parts
  const renderWorkers = createRenderWorkers({ use_ffmpeg, size: 1 })
  const sandbox = createSandboxVideo({ clock: manualClock(), errors, renderWorkers, ...rest })
  leave.push(sandbox.close)
  return sandbox
}

let orders = 0
const call = (prompt: string, rest: Partial<VideoOrder> & { key?: string } = {}): VideoCall => {
  const { key = `key_${orders++}`, ...fields } = rest
  const request = { model: 'sandbox/text-to-video', prompt, n: 1, ...fields }
  return { model: 'text-to-video', task_id: 'task_1', idempotency_key: key, request }
}

const order = async (video: SandboxVideo, prompt: string, rest: Partial<VideoOrder> & { key?: string } = {}) =>
  (await video.start(call(prompt, rest), signal)).operation

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => new Error('it was answered'),
    (reason) => reason,
  )
  if (error instanceof GatewayError) return error
  throw error
}

async function bytesOf(progress: TaskProgress): Promise<Uint8Array<ArrayBuffer>> {
  if (progress.status !== 'SUCCESS') throw new Error(JSON.stringify(progress))
  const [output] = progress.outputs
  if (!output || !('open' in output)) throw new Error('no file')
  expect(output.content_type).toBe('video/mp4')
  return new Uint8Array(await new Response(await output.open(signal)).arrayBuffer())
}

/** Polls until the end; returns all states. */
async function follow(video: SandboxVideo, operation: Json): Promise<{ end: TaskProgress; seen: TaskProgress[] }> {
  const seen: TaskProgress[] = []
  for (;;) {
    const current = await video.status(operation, signal)
    if (current.status === 'SUCCESS' || current.status === 'FAILURE') return { end: current, seen }
    seen.push(current)
    await Bun.sleep(5) // the renderer is a process of the real world; nothing here depends on how long this is
  }
}

/** The top-level boxes of an MP4. */
function boxesOf(file: Uint8Array): string[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const kinds: string[] = []
  for (let at = 0; at + 8 <= file.length; at += Math.max(8, view.getUint32(at))) {
    kinds.push(new TextDecoder().decode(file.subarray(at + 4, at + 8)))
  }
  return kinds
}

async function look(file: Uint8Array<ArrayBuffer>) {
  const input = new Input({ source: new BufferSource(file), formats: [MP4] })
  const [video, audio] = [await input.getPrimaryVideoTrack(), await input.getPrimaryAudioTrack()]
  if (!video) throw new Error('no video track')
  const config = await video.getDecoderConfig()
  let [frames, keys] = [0, 0]
  for await (const packet of new EncodedPacketSink(video).packets()) {
    frames++
    if (packet.type === 'key') keys++
  }
  return {
    codec: config?.codec.slice(0, 4),
    /** The version of the AVCDecoderConfigurationRecord. */
    avcC: config?.description ? new Uint8Array(config.description as ArrayBuffer)[0] : undefined,
    sides: [video.displayWidth, video.displayHeight],
    seconds: await video.computeDuration(),
    frames,
    keys,
    audio: audio && {
      codec: audio.codec,
      rate: audio.sampleRate,
      channels: audio.numberOfChannels,
      seconds: Math.round((await audio.computeDuration()) * 1000) / 1000,
    },
    tags: await input.getMetadataTags(),
  }
}

const SOUND = { codec: 'aac', rate: 48_000, channels: 2, seconds: 4 } as const

describe('a video of the sandbox', () => {
  test('is an H.264 MP4 of the requested size and duration, with sound and the index first', async () => {
    const sandbox = open()
    const operation = await order(sandbox, 'A slow river at dawn', { size: '720p', duration: 4, audio_enable: true })
    const { end, seen } = await follow(sandbox, operation)
    const file = await bytesOf(end)
    expect(boxesOf(file)).toEqual(['ftyp', 'moov', 'mdat'])
    const { tags, ...rest } = await look(file)
    expect(rest).toEqual({
      codec: 'avc1',
      avcC: 1,
      sides: [1280, 720],
      seconds: 4,
      frames: 96,
      keys: 2,
      audio: { ...SOUND },
    })
    expect(tags).toMatchObject({ title: 'A slow river at dawn', comment: 'Gatehouse sandbox: simulated' })
    // The progress follows the work: more and more frames, and never all of them before the end.
    const shares = seen.flatMap(({ status, ...current }) =>
      status === 'IN_PROGRESS' && 'progress' in current ? [current.progress ?? 0] : [],
    )
    expect(shares).toEqual(shares.toSorted((one, other) => one - other))
    expect(new Set(shares).size).toBeGreaterThan(3)
    expect(Math.max(...shares)).toBeLessThanOrEqual(99)
  }, 120_000)

  test.if(ffmpeg !== undefined)(
    'is the same in its measures where the machine has an ffmpeg',
    async () => {
      const sandbox = open({ use_ffmpeg: true })
      const operation = await order(sandbox, 'A river; "quoted" = \\ %', { aspect_ratio: '9:16', audio_enable: true })
      const file = await bytesOf((await follow(sandbox, operation)).end)
      expect(boxesOf(file).indexOf('moov')).toBeLessThan(boxesOf(file).indexOf('mdat'))
      const { tags, keys, audio, ...rest } = await look(file)
      expect(rest).toEqual({ codec: 'avc1', avcC: 1, sides: [720, 1280], seconds: 4, frames: 96 })
      expect(audio).toMatchObject({ codec: 'aac', rate: 48_000, channels: 2 })
      expect(audio?.seconds).toBeWithin(3.99, 4.03)
      expect(tags).toMatchObject({ title: 'A river; "quoted" = \\ %', comment: 'Gatehouse sandbox: simulated' })
    },
    120_000,
  )

  test.each([
    ['16:9', 4, 64, 36],
    ['9:16', 8, 36, 64],
    ['1:1', 4, 36, 36],
    ['4:3', 8, 48, 36],
    ['3:4', 4, 36, 48],
  ])(
    'that is quick is tiny, %s and %d s long, is done at the first poll, and declares itself a stand-in',
    async (...row) => {
      const [aspect_ratio, duration, ...sides] = row
      const sandbox = open()
      const operation = await order(sandbox, 'A river\n@sandbox quick=1', { aspect_ratio, duration })
      const { tags, ...rest } = await look(await bytesOf(await sandbox.status(operation, signal)))
      expect(rest).toMatchObject({ codec: 'avc1', avcC: 1, sides, seconds: duration, frames: duration, audio: null })
      expect(tags.comment).toContain('quick=1')
    },
  )

  test('is the same, byte for byte, for the same order, and differs for another seed', async () => {
    const sandbox = open()
    const make = async (seed: number) => {
      const operation = await order(sandbox, 'A river\n@sandbox quick=1', { seed, audio_enable: true })
      return Buffer.from(await bytesOf(await sandbox.status(operation, signal))).toString('base64')
    }
    const [first, again, other] = [await make(1), await make(1), await make(2)]
    expect(again).toBe(first)
    expect(other).not.toBe(first)
  })

  test('is rendered by any process from the operation alone: after a restart it is the same', async () => {
    const before = open()
    const operation = await order(before, 'A river\n@sandbox quick=1', { audio_enable: true })
    const first = await bytesOf(await before.status(operation, signal))
    await before.close()
    const stored = JSON.parse(JSON.stringify(operation))
    expect(await bytesOf(await open().status(stored, signal))).toEqual(first)
  })
})

describe('an order', () => {
  test('with the same key is the same order, and one job', async () => {
    const sandbox = open()
    const [one, two] = [
      await order(sandbox, 'A\n@sandbox hang=1', { key: 'k' }),
      await order(sandbox, 'A\n@sandbox hang=1', { key: 'k' }),
    ]
    expect(two).toEqual(one)
    expect(await order(sandbox, 'A\n@sandbox hang=1', { key: 'other' })).not.toEqual(one)
    expect(sandbox.resubmit).toBe('safe')
  })

  test.each([
    ['aspect_ratio', { aspect_ratio: '21:9' }],
    ['size', { size: '4k' }],
    ['duration', { duration: 5 }],
    ['n', { n: 2 }],
    ['image', { image: 'https://example.com/a.png' }],
    ['last_image', { last_image: 'https://example.com/a.png' }],
    ['images', { images: ['https://example.com/a.png'] }],
    ['video', { video: 'https://example.com/a.mp4' }],
    ['negative_prompt', { negative_prompt: 'rain' }],
  ] as [string, Partial<VideoOrder>][])('is rejected for an invalid %s, and certainly not accepted', async (...row) => {
    const [param, fields] = row
    const { code, detail } = await refusal(order(open(), 'A', fields))
    expect([code, detail.param, detail.accepted]).toEqual(['upstream_invalid_request', param, 'no'])
  })

  test('is rejected when too many wait, and accepted again later', async () => {
    const never = { render: () => new Promise<void>(() => {}), waiting: () => waiting, close() {} }
    let waiting = 2
    const video = createSandboxVideo({ clock, errors, renderWorkers: never, max_waiting: 2 })
    const known = (await createSandboxVideo({ clock, errors, renderWorkers: never }).start(call('B'), signal)).operation
    const { code, detail } = await refusal(video.start(call('A'), signal))
    expect([code, detail.accepted, detail.retry_after]).toEqual(['server_is_overloaded', 'no', 5])
    expect(await video.status(known, signal)).toEqual({ status: 'QUEUED', progress: 0, retry_after_seconds: 5 })
    waiting = 1
    await video.start(call('A'), signal)
  })

  test('of one owner may fill half of the queue, which leaves room for others', async () => {
    const waiting = (owner?: string) => (owner === 'free' ? 4 : 5)
    const renderWorkers = { render: () => new Promise<void>(() => {}), waiting, close() {} }
    const video = createSandboxVideo({ clock, errors, renderWorkers, max_waiting: 10 })
    expect((await refusal(video.start({ ...call('A'), owner: 'busy' }, signal))).code).toBe('server_is_overloaded')
    await video.start({ ...call('A'), owner: 'free' }, signal)
  })

  test('is small JSON however long its prompt, and an unknown operation is bad_upstream_response', async () => {
    const sandbox = open()
    const operation = await order(sandbox, `${'long '.repeat(6000)}\n@sandbox hang=1`)
    expect(JSON.parse(JSON.stringify(operation))).toEqual(operation)
    expect(JSON.stringify(operation).length).toBeLessThan(2500)
    for (const strange of [null, 'x', {}, { id: 'vid_1' }]) {
      expect((await refusal(sandbox.status(strange, signal))).code).toBe('bad_upstream_response')
    }
  })
})

describe('directives of an order', () => {
  test.each([
    ['status=429 retry_after=7', 'rate_limit_exceeded', 7, 'no'],
    ['status=401', 'upstream_auth', undefined, 'no'],
    ['status=400', 'upstream_invalid_request', undefined, 'no'],
    // The same rule as for every provider: a 409 or 5xx leaves the order in doubt.
    ['status=503', 'server_is_overloaded', undefined, undefined],
    ['status=500', 'bad_upstream_response', undefined, undefined],
    ['status=409', 'bad_upstream_response', undefined, undefined],
    ['nonsense=1', 'upstream_invalid_request', undefined, 'no'],
  ])('%s rejects the order: %s', async (line, code, retry_after, accepted) => {
    const error = await refusal(order(open(), `A\n@sandbox ${line}`))
    expect([error.code, error.detail.accepted, error.detail.retry_after] as unknown[]).toEqual([
      code,
      accepted,
      retry_after,
    ])
  })

  test('lose=1 accepts the order, loses the response, and finds the first order when it is repeated', async () => {
    const sandbox = open()
    const prompt = 'A\n@sandbox lose=1 quick=1'
    const error = await refusal(order(sandbox, prompt, { key: 'lost' }))
    expect([error.code, error.detail.accepted]).toEqual(['upstream_cut', undefined])
    const operation = await order(sandbox, prompt, { key: 'lost' })
    expect((await sandbox.status(operation, signal)).status).toBe('SUCCESS')
    expect((await refusal(order(sandbox, prompt, { key: 'another' }))).code).toBe('upstream_cut')
  })

  test('fail= fails the task with that code after it ran', async () => {
    const clock = manualClock()
    const sandbox = open({ clock })
    const operation = await order(sandbox, 'A\n@sandbox fail=content_policy_violation render_ms=1000')
    expect(await sandbox.status(operation, signal)).toMatchObject({ status: 'IN_PROGRESS', progress: 0 })
    clock.advance(1000)
    const end = await sandbox.status(operation, signal)
    expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'content_policy_violation' })
  })

  test('no_output=1 ends with success and no outputs', async () => {
    const sandbox = open()
    const operation = await order(sandbox, 'A\n@sandbox no_output=1')
    expect(await sandbox.status(operation, signal)).toEqual({ status: 'SUCCESS', outputs: [] })
  })

  test('hang=1 runs without end, and can be canceled', async () => {
    const clock = manualClock()
    const sandbox = open({ clock })
    const operation = await order(sandbox, 'A\n@sandbox hang=1')
    for (const wait of [0, 3_600_000, 86_400_000]) {
      clock.advance(wait)
      expect((await sandbox.status(operation, signal)).status).toBe('IN_PROGRESS')
    }
    await sandbox.cancel?.(operation, signal)
    expect(await sandbox.status(operation, signal)).toMatchObject({ status: 'FAILURE', fail_code: 'canceled' })
  })

  test('limit and garbage fail the first polls with 429, the next with an unreadable response', async () => {
    const sandbox = open()
    const operation = await order(sandbox, 'A\n@sandbox quick=1 limit=2 garbage=1 retry_after=9')
    const ask = () => sandbox.status(operation, signal)
    for (let question = 0; question < 2; question++) {
      const { code, detail } = await refusal(ask())
      expect([code, detail.retry_after] as unknown[]).toEqual(['rate_limit_exceeded', 9])
    }
    expect((await refusal(ask())).code).toBe('bad_upstream_response')
    expect((await ask()).status).toBe('SUCCESS')
  })

  test('queue_ms and render_ms delay the states by the clock', async () => {
    const clock = manualClock()
    const sandbox = open({ clock })
    const operation = await order(sandbox, 'A\n@sandbox quick=1 queue_ms=1000 render_ms=4000')
    const at = async (ms: number) => {
      clock.advance(ms)
      return sandbox.status(operation, signal)
    }
    expect(await at(999)).toEqual({ status: 'QUEUED', progress: 0 })
    expect(await at(1)).toEqual({ status: 'IN_PROGRESS', progress: 0 })
    expect(await at(2000)).toEqual({ status: 'IN_PROGRESS', progress: 50 })
    expect(await at(1999)).toEqual({ status: 'IN_PROGRESS', progress: 99 })
    expect((await at(1)).status).toBe('SUCCESS')
  })

  test('a renderer that crashes ends the task with generation_failed', async () => {
    const renderWorkers = createRenderWorkers({ size: 1, command: [process.execPath, '-e', 'process.exit(7)'] })
    const sandbox = open({ renderWorkers })
    const operation = await order(sandbox, 'A\n@sandbox quick=1')
    const end = await sandbox.status(operation, signal)
    expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'generation_failed' })
    if (end.status === 'FAILURE') expect(end.fail_reason).toContain('the renderer ended (7)')
  })
})

test('a machine without space for the file ends the task with generation_failed, without its paths', async () => {
  const sandbox = open({ files: createTemporaryFiles({ parent: join(directory(), 'nowhere') }) })
  const end = await sandbox.status(await order(sandbox, 'A\n@sandbox quick=1'), signal)
  expect(end).toMatchObject({ status: 'FAILURE', fail_code: 'generation_failed' })
  expect(JSON.stringify(end)).toContain('ENOENT')
  expect(JSON.stringify(end)).not.toContain('nowhere')
})

describe('canceling', () => {
  test('stops the job and frees its worker; a finished order cannot be canceled', async () => {
    const sandbox = open()
    const large = await order(sandbox, 'A', { size: '1080p', duration: 8 })
    const next = await order(sandbox, 'B\n@sandbox quick=1')
    await sandbox.cancel?.(large, signal)
    expect(await sandbox.status(large, signal)).toMatchObject({ status: 'FAILURE', fail_code: 'canceled' })
    expect((await sandbox.status(next, signal)).status).toBe('SUCCESS')
    const error = await refusal(sandbox.cancel?.(next, signal) ?? Promise.resolve())
    expect(error.code).toBe('upstream_invalid_request')
  })

  test('works for an order of another process', async () => {
    const operation = await order(open(), 'A\n@sandbox hang=1')
    const video = open()
    await video.cancel?.(operation, signal)
    expect(await video.status(operation, signal)).toMatchObject({ status: 'FAILURE', fail_code: 'canceled' })
  })
})

describe('finished files', () => {
  test('are deleted some time after the last poll; a later poll renders the same file again', async () => {
    const [clock, parent] = [manualClock(), directory()]
    const sandbox = open({ clock, files: createTemporaryFiles({ parent }) })
    const operation = await order(sandbox, 'A\n@sandbox quick=1')
    const first = await bytesOf(await sandbox.status(operation, signal))
    const countFiles = async () =>
      (await readdir(parent, { recursive: true })).filter((name) => name.endsWith('.mp4')).length
    clock.advance(599_999)
    expect(await countFiles()).toBe(1)
    clock.advance(1)
    // Removal is in progress: another file is rendered only after the first one has been removed.
    expect(await bytesOf(await sandbox.status(operation, signal))).toEqual(first)
    expect(await countFiles()).toBe(1)
  })

  test('are deleted when the sandbox is closed, and after a day if a killed process left them', async () => {
    const parent = directory()
    const stale = mkdtempSync(join(parent, 'gatehouse-sandbox-'))
    const fresh = mkdtempSync(join(parent, 'gatehouse-sandbox-'))
    const yesterday = Date.now() / 1000 - 86_500
    await utimes(stale, yesterday, yesterday)
    const sandbox = open({ files: createTemporaryFiles({ parent }) })
    const operation = await order(sandbox, 'A\n@sandbox quick=1')
    const end = await sandbox.status(operation, signal)
    const names = await readdir(parent)
    expect(names).toHaveLength(2)
    expect(names).not.toContain(stale.slice(parent.length + 1))
    await sandbox.close()
    expect(await readdir(parent)).toEqual([fresh.slice(parent.length + 1)])
    if (end.status !== 'SUCCESS' || !end.outputs[0] || !('open' in end.outputs[0])) throw new Error('no output')
    expect((await refusal(end.outputs[0].open(signal))).code).toBe('output_gone')
  })
})
