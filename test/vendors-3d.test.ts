/** The adapters of vendors of 3D models, each against a loopback server that responds in the vendor's format. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { createLog } from '../src/kit/log.ts'
import type { Media } from '../src/providers/media.ts'
import type { TaskProgress, ThreeDCall, ThreeDProvider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { createTransport } from '../src/providers/upstream/transport.ts'
import { type ErrorCode, GatewayError } from '../src/spec/error.ts'
import type { Json } from '../src/spec/task.ts'
import type { ThreeDOrder } from '../src/spec/three-d-request.ts'
import { manualClock } from './kit/clock.ts'
import { type Answer, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'key-of-the-operator'
const SIGNAL = new AbortController().signal
const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const PNG_URI = `data:image/png;base64,${PNG}`
const URL_A = 'https://files.example/a.png'
const TASK_ID = 'task_0123456789abcdefghijABCDEFGHIJ45'

const fixture = (kind: string, name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dir, 'fixtures', kind, `${name}.json`), 'utf8'))

let vendor: Vendor | undefined
afterEach(() => vendor?.stop())

const partsOf = (config: ProviderConfig, environment: Record<string, string> = {}) => {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const transport = createTransport({ clock, log })
  return { id: 'acme', config, timeouts: DEFAULT_TIMEOUTS, transport, clock, log, environment, manual: async () => [] }
}

type Kind = Extract<ProviderKind, 'meshy' | 'tripo' | 'fal'>
const VERSION: Record<Kind, string> = { meshy: '/openapi', tripo: '/v2/openapi', fal: '' }

function open(kind: Kind, ...parts: (Answer | { media: Media })[]): { vendor: Vendor; threeD: ThreeDProvider } {
  vendor = startVendor(...parts.filter((part) => typeof part === 'function'))
  const media = parts.find((part) => typeof part === 'object')
  const config = { kind, base_url: vendor.origin + VERSION[kind], key: KEY }
  const { threeD } = createProvider({ ...partsOf(config), ...media })
  if (!threeD) throw new Error('the provider has no 3D models')
  return { vendor, threeD }
}

const callOf = (model: string, order: Partial<ThreeDOrder> = {}): ThreeDCall => ({
  model,
  request: { model: `acme/${model}`, format: 'glb', ...order },
  task_id: TASK_ID,
  idempotency_key: `${TASK_ID}:acme/${model}`,
})

async function errorOf(promise: Promise<unknown> | undefined): Promise<GatewayError> {
  const thrown = await Promise.resolve(promise).catch((error: unknown) => error)
  if (thrown instanceof GatewayError) return thrown
  throw new Error(`expected a GatewayError, found ${thrown}`)
}

/** Sends the order and returns the request that the vendor received. */
async function bodyOf(kind: Kind, model: string, order: Partial<ThreeDOrder>) {
  const { vendor, threeD } = open(kind, whole(fixture(kind, kind === 'fal' ? '3d-accepted' : 'accepted')))
  const { operation } = await threeD.start(callOf(model, order), SIGNAL)
  const [request] = vendor.requests
  return { method: request?.method, path: request?.path, body: request?.json(), operation }
}

const MESHY_ID = '018a210d-8ba4-705c-b111-1f1776f7f578'
const MESHY_FILES = (name: string) =>
  `https://assets.meshy.ai/tasks/${MESHY_ID}/output/${name}?Expires=1700000000&Signature=abc`
const GLB = 'model/gltf-binary'

describe('meshy', () => {
  const TEXT = { prompt: 'A red kite' }
  const textured: Json = {
    way: 'text',
    id: MESHY_ID,
    model: 'meshy-6',
    format: 'glb',
    texture: { mode: 'refine', ai_model: 'meshy-6', target_formats: ['glb'] },
  }

  test('a text prompt is an order in two parts, and the second is stored with the first', async () => {
    const metadata = {
      meshy: { symmetry_mode: 'on', texture_prompt: 'red silk', mode: 'refine', ai_model: 'other', topology: 'quad' },
      tripo: { quad: true },
    }
    const order = { ...TEXT, pbr: true, target_polycount: 9_000, metadata, seed: 3 }
    expect(await bodyOf('meshy', 'meshy-6', order)).toEqual({
      method: 'POST',
      path: '/openapi/v2/text-to-3d',
      body: {
        mode: 'preview',
        prompt: 'A red kite',
        ai_model: 'meshy-6',
        should_remesh: true,
        target_polycount: 9_000,
        symmetry_mode: 'on',
        topology: 'quad',
      },
      operation: {
        ...textured,
        texture: {
          mode: 'refine',
          ai_model: 'meshy-6',
          enable_pbr: true,
          target_formats: ['glb'],
          texture_prompt: 'red silk',
        },
      },
    })
  })

  test('a text prompt without a texture is one order', async () => {
    const { body, operation } = await bodyOf('meshy', 'meshy-6', { ...TEXT, texture: false, format: 'stl' })
    expect(body).toEqual({ mode: 'preview', prompt: 'A red kite', ai_model: 'meshy-6', target_formats: ['stl'] })
    expect(operation).toEqual({ way: 'text', id: MESHY_ID, model: 'meshy-6', format: 'stl' })
  })

  test('the second part refines the output of the first, and its progress is the second half', async () => {
    const { vendor, threeD } = open(
      'meshy',
      whole(fixture('meshy', 'running')),
      whole(fixture('meshy', 'done')),
      whole({ result: 'second' }, { status: 202 }),
      whole(fixture('meshy', 'running')),
      whole(fixture('meshy', 'done')),
    )
    expect(await threeD.status(textured, SIGNAL)).toEqual({ status: 'IN_PROGRESS', progress: 21 })
    expect(await threeD.status(textured, SIGNAL)).toEqual({ status: 'PROCEED' })
    const next = await threeD.proceed?.(textured, { task_id: TASK_ID, idempotency_key: 'k' }, SIGNAL)
    expect(next).toEqual({
      operation: { way: 'text', id: 'second', model: 'meshy-6', format: 'glb', part: 2, first: MESHY_ID },
    })
    expect(vendor.requests[2]?.json()).toEqual({
      mode: 'refine',
      preview_task_id: MESHY_ID,
      ai_model: 'meshy-6',
      target_formats: ['glb'],
    })
    if (!next) throw new Error('no second part')
    expect(await threeD.status(next.operation, SIGNAL)).toEqual({ status: 'IN_PROGRESS', progress: 71 })
    expect(await threeD.status(next.operation, SIGNAL)).toMatchObject({ status: 'SUCCESS' })
    expect(vendor.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `GET /openapi/v2/text-to-3d/${MESHY_ID}`,
      `GET /openapi/v2/text-to-3d/${MESHY_ID}`,
      'POST /openapi/v2/text-to-3d',
      'GET /openapi/v2/text-to-3d/second',
      'GET /openapi/v2/text-to-3d/second',
    ])
  })

  test('one or several images are one order', async () => {
    const one = await bodyOf('meshy', 'meshy-6', { image: PNG, prompt: 'red silk', texture: true, pbr: false })
    expect(one).toMatchObject({ path: '/openapi/v1/image-to-3d', operation: { way: 'image', id: MESHY_ID } })
    expect(one.body).toEqual({
      image_url: PNG_URI,
      ai_model: 'meshy-6',
      should_texture: true,
      enable_pbr: false,
      texture_prompt: 'red silk',
      target_formats: ['glb'],
    })
    vendor?.stop()
    const several = await bodyOf('meshy', 'latest', { images: [URL_A, PNG], target_polycount: 100 })
    expect(several).toMatchObject({ path: '/openapi/v1/multi-image-to-3d', operation: { way: 'images' } })
    expect(several.body).toEqual({
      image_urls: [URL_A, PNG_URI],
      ai_model: 'latest',
      should_remesh: true,
      target_polycount: 100,
      target_formats: ['glb'],
    })
  })

  test('generates the further formats in metadata', async () => {
    const metadata = { meshy: { target_formats: ['usdz', 'glb', 'nonsense'] } }
    const { body } = await bodyOf('meshy', 'meshy-6', { image: URL_A, format: 'obj', metadata })
    expect(body?.target_formats).toEqual(['obj', 'glb', 'usdz'])
  })

  const single: Json = { way: 'image', id: MESHY_ID, model: 'meshy-6', format: 'glb' }
  const states: [string, TaskProgress][] = [
    ['pending', { status: 'QUEUED' }],
    ['running', { status: 'IN_PROGRESS', progress: 42 }],
    [
      'failed',
      {
        status: 'FAILURE',
        fail_code: 'generation_failed',
        fail_reason: 'The server is busy. Please try again later.',
      },
    ],
    [
      'failed-policy',
      {
        status: 'FAILURE',
        fail_code: 'content_policy_violation',
        fail_reason: 'The prompt did not pass the moderation.',
      },
    ],
    ['canceled', { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'The task was canceled at the upstream.' }],
    [
      'expired',
      { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'The task expired at the upstream.' },
    ],
    [
      'done-without-files',
      {
        status: 'FAILURE',
        fail_code: 'no_output',
        fail_reason: 'The upstream "acme" reported success, but returned no file.',
      },
    ],
  ]
  test.each(states)('reads the task state %s', async (name, progress) => {
    const { vendor, threeD } = open('meshy', whole(fixture('meshy', name)))
    expect(await threeD.status(single, SIGNAL)).toEqual(progress)
    expect(vendor.requests[0]).toMatchObject({ method: 'GET', path: `/openapi/v1/image-to-3d/${MESHY_ID}` })
    expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  test('outputs start with the requested format, then come other formats, and the preview is last', async () => {
    const { threeD } = open('meshy', whole(fixture('meshy', 'done')), whole(fixture('meshy', 'done')))
    const glb = { url: MESHY_FILES('model.glb'), content_type: GLB }
    const others = [
      { url: MESHY_FILES('model.fbx'), content_type: 'application/vnd.autodesk.fbx' },
      { url: MESHY_FILES('model.usdz'), content_type: 'model/vnd.usdz+zip' },
    ]
    const obj = { url: MESHY_FILES('model.obj'), content_type: 'model/obj' }
    const preview = { url: MESHY_FILES('preview.png'), content_type: 'image/png' }
    expect(await threeD.status(single, SIGNAL)).toEqual({ status: 'SUCCESS', outputs: [glb, obj, ...others, preview] })
    // OBJ is followed by its material and its textures.
    expect(await threeD.status({ ...(single as object), format: 'obj' }, SIGNAL)).toEqual({
      status: 'SUCCESS',
      outputs: [
        obj,
        { url: MESHY_FILES('model.mtl'), content_type: 'model/mtl' },
        { url: MESHY_FILES('texture_0.png'), content_type: 'image/png' },
        { url: MESHY_FILES('texture_0_metallic.png'), content_type: 'image/png' },
        glb,
        ...others,
        preview,
      ],
    })
  })

  test.each<[string, Partial<ThreeDOrder>]>([
    ['negative_prompt', { ...TEXT, negative_prompt: 'rain' }],
    ['images', { images: [URL_A, URL_A, URL_A, URL_A, URL_A] }],
    ['prompt', { image: URL_A, ...TEXT, texture: false }],
  ])('rejects the unsupported field %s before a request is sent', async (param, order) => {
    const { vendor, threeD } = open('meshy')
    const error = await errorOf(threeD.start(callOf('meshy-6', order), SIGNAL))
    expect([error.status, error.detail.param, error.detail.accepted]).toEqual([400, param, 'no'])
    expect(vendor.requests).toHaveLength(0)
  })

  test.each<[number, unknown, ErrorCode]>([
    [400, { message: 'Invalid values for field "ai_model".' }, 'upstream_invalid_request'],
    [400, { message: 'The prompt violates our content policy.' }, 'content_policy_violation'],
    [401, { message: 'Unauthorized' }, 'upstream_auth'],
    [402, { message: 'Insufficient funds' }, 'insufficient_quota'],
    [429, { message: 'NoMoreConcurrentTasks' }, 'rate_limit_exceeded'],
  ])('each part of an order with the response %d %p fails with %s and was not accepted', async (status, body, code) => {
    const refused = whole(body, { status })
    const { threeD } = open('meshy', refused, refused)
    const call = { task_id: TASK_ID, idempotency_key: 'k' }
    const first = await errorOf(threeD.start(callOf('meshy-6', TEXT), SIGNAL))
    const second = await errorOf(threeD.proceed?.(textured, call, SIGNAL))
    expect({ first: first.code, second: second.code }).toEqual({ first: code, second: code })
    expect({ first: first.detail.accepted, second: second.detail.accepted }).toEqual({ first: 'no', second: 'no' })
  })
})

const TRIPO_ID = 'ef731ad6-aeb0-4950-9a2e-2298359dfaf8'
const TRIPO_FILES = (name: string) => `https://tripo-data.rg1.data.tripo3d.com/tcli_1/20240227/${TRIPO_ID}/${name}`
const MODEL = 'v2.5-20250123'

describe('tripo', () => {
  const TEXT = { prompt: 'A red kite' }
  const operation: Json = { id: TRIPO_ID, model: MODEL, format: 'glb' }

  test('sends an order with a text prompt in the format of the vendor', async () => {
    const order = {
      ...TEXT,
      negative_prompt: 'rain',
      texture: true,
      pbr: false,
      target_polycount: 5_000,
      seed: 7,
      metadata: { tripo: { texture_quality: 'detailed', type: 'stylize_model', face_limit: 1 } },
    }
    expect(await bodyOf('tripo', MODEL, order)).toEqual({
      method: 'POST',
      path: '/v2/openapi/task',
      body: {
        type: 'text_to_model',
        model_version: MODEL,
        prompt: 'A red kite',
        negative_prompt: 'rain',
        texture: true,
        pbr: false,
        face_limit: 5_000,
        model_seed: 7,
        texture_quality: 'detailed',
      },
      operation,
    })
  })

  test('texture: false turns off the PBR maps too, which would include a texture', async () => {
    const { body } = await bodyOf('tripo', MODEL, { ...TEXT, texture: false })
    expect(body).toMatchObject({ texture: false, pbr: false })
  })

  test('an image by URL is forwarded; several are the views in their order, with empty places', async () => {
    const { body } = await bodyOf('tripo', MODEL, { image: URL_A })
    expect(body).toEqual({ type: 'image_to_model', model_version: MODEL, file: { type: 'png', url: URL_A } })
    vendor?.stop()
    const several = await bodyOf('tripo', MODEL, { images: [URL_A, 'https://files.example/b.JPEG'] })
    expect(several.body).toEqual({
      type: 'multiview_to_model',
      model_version: MODEL,
      files: [{ type: 'png', url: URL_A }, { type: 'jpg', url: 'https://files.example/b.JPEG' }, {}, {}],
    })
    vendor?.stop()
    const single = await bodyOf('tripo', MODEL, { images: [URL_A] })
    expect(single.body).toMatchObject({ type: 'image_to_model', file: { url: URL_A } })
  })

  const media: Media = {
    read: async (value) => ({
      bytes: Buffer.from(value.slice(value.indexOf(',') + 1), 'base64'),
      content_type: 'image/png',
    }),
    check: async () => {},
  }

  test('an image in base64 is uploaded first', async () => {
    const { vendor, threeD } = open('tripo', whole(fixture('tripo', 'uploaded')), whole(fixture('tripo', 'accepted')), {
      media,
    })
    await threeD.start(callOf(MODEL, { image: PNG }), SIGNAL)
    const [upload, order] = vendor.requests
    expect(upload).toMatchObject({ method: 'POST', path: '/v2/openapi/upload/sts' })
    expect(upload?.headers['content-type']).toStartWith('multipart/form-data; boundary=')
    expect(upload?.body).toContain('filename="image.png"')
    expect(order?.json()).toMatchObject({ file: { type: 'png', file_token: 'ce85f375-3ccc-440b-b847-571588872ec2' } })
  })

  test.each<[string, Answer]>([
    ['a broken connection', reset()],
    ['502', whole({ message: 'bad gateway' }, { status: 502 })],
    ['a response without a token', whole({ code: 0, data: {} })],
  ])('an order was not accepted when its upload failed: %s', async (_, answer) => {
    const { vendor, threeD } = open('tripo', answer, { media })
    const error = await errorOf(threeD.start(callOf(MODEL, { image: PNG }), SIGNAL))
    expect(error.detail.accepted).toBe('no')
    expect(vendor.requests).toHaveLength(1)
  })

  test('a format other than GLB is a second order, and the outputs contain the files of both', async () => {
    const { vendor, threeD } = open(
      'tripo',
      whole(fixture('tripo', 'accepted')),
      whole(fixture('tripo', 'success')),
      whole({ code: 0, data: { task_id: 'second' } }),
      whole(fixture('tripo', 'running')),
      whole(fixture('tripo', 'converted')),
      whole(fixture('tripo', 'success')),
    )
    const { operation } = await threeD.start(callOf(MODEL, { ...TEXT, format: 'fbx', target_polycount: 900 }), SIGNAL)
    expect(operation).toEqual({ id: TRIPO_ID, model: MODEL, format: 'fbx', convert: { face_limit: 900 } })
    expect(await threeD.status(operation, SIGNAL)).toEqual({ status: 'PROCEED' })
    const next = await threeD.proceed?.(operation, { task_id: TASK_ID, idempotency_key: 'k' }, SIGNAL)
    if (!next) throw new Error('no second part')
    expect(next.operation).toEqual({ id: 'second', model: MODEL, format: 'fbx', first: TRIPO_ID })
    expect(vendor.requests[2]?.json()).toEqual({
      type: 'convert_model',
      format: 'FBX',
      original_model_task_id: TRIPO_ID,
      face_limit: 900,
    })
    // The progress of the conversion starts at zero again, so it is not reported.
    expect(await threeD.status(next.operation, SIGNAL)).toEqual({ status: 'IN_PROGRESS' })
    expect(await threeD.status(next.operation, SIGNAL)).toEqual({
      status: 'SUCCESS',
      outputs: [
        { url: TRIPO_FILES('tripo_convert.fbx?Policy=x'), content_type: 'application/vnd.autodesk.fbx' },
        { url: TRIPO_FILES('tripo_pbr_model.glb?Policy=y'), content_type: GLB },
        { url: TRIPO_FILES('rendered.webp?Policy=z'), content_type: 'image/webp' },
      ],
    })
    expect(vendor.requests.slice(3).map(({ path }) => path)).toEqual([
      '/v2/openapi/task/second',
      '/v2/openapi/task/second',
      `/v2/openapi/task/${TRIPO_ID}`,
    ])
  })

  test('a packed conversion is an archive', async () => {
    const converted: Json = { id: 'second', model: MODEL, format: 'obj', first: TRIPO_ID }
    const { threeD } = open('tripo', whole(fixture('tripo', 'converted-archive')), whole(fixture('tripo', 'expired')))
    expect(await threeD.status(converted, SIGNAL)).toEqual({
      status: 'SUCCESS',
      outputs: [{ url: TRIPO_FILES('tripo_convert.zip?Policy=x'), content_type: 'application/zip' }],
    })
  })

  test('a model with quads is already FBX', async () => {
    const order = { ...TEXT, format: 'fbx' as const, metadata: { tripo: { quad: true } } }
    expect((await bodyOf('tripo', MODEL, order)).operation).toEqual({ id: TRIPO_ID, model: MODEL, format: 'fbx' })
  })

  test.each<[string, TaskProgress]>([
    ['queued', { status: 'QUEUED' }],
    ['running', { status: 'IN_PROGRESS', progress: 42 }],
    ['failed', { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'Something broke inside.' }],
    [
      'banned',
      { status: 'FAILURE', fail_code: 'content_policy_violation', fail_reason: 'The upstream rejected the content.' },
    ],
    ['cancelled', { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'The task was canceled at the upstream.' }],
    [
      'expired',
      { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'The task expired at the upstream.' },
    ],
    [
      'success-without-files',
      {
        status: 'FAILURE',
        fail_code: 'no_output',
        fail_reason: 'The upstream "acme" reported success, but returned no file.',
      },
    ],
    [
      'success',
      {
        status: 'SUCCESS',
        outputs: [
          { url: TRIPO_FILES('tripo_pbr_model.glb?Policy=y'), content_type: GLB },
          { url: TRIPO_FILES('rendered.webp?Policy=z'), content_type: 'image/webp' },
        ],
      },
    ],
  ])('reads the task state %s', async (name, progress) => {
    const { vendor, threeD } = open('tripo', whole(fixture('tripo', name)))
    expect(await threeD.status(operation, SIGNAL)).toEqual(progress)
    expect(vendor.requests[0]).toMatchObject({ method: 'GET', path: `/v2/openapi/task/${TRIPO_ID}` })
  })

  test.each<[number, unknown, ErrorCode]>([
    [429, { code: 2000, message: 'You have exceeded the limit of generation.' }, 'rate_limit_exceeded'],
    [400, { code: 2002, message: 'This task type is not supported' }, 'upstream_invalid_request'],
    [400, { code: 2008, message: 'The input violates our content policy.' }, 'content_policy_violation'],
    [403, { code: 2010, message: 'You need more credits to start a new task.' }, 'insufficient_quota'],
    [401, { code: 1002, message: 'Authentication failed' }, 'upstream_auth'],
  ])('an order with the response %d %p fails with %s and was not accepted', async (status, body, code) => {
    const { threeD } = open('tripo', whole(body, { status }))
    const error = await errorOf(threeD.start(callOf(MODEL, TEXT), SIGNAL))
    expect([error.code, error.detail.accepted]).toEqual([code, 'no'])
  })

  test('an unknown error code with status 200 leaves open whether the order was accepted', async () => {
    const { threeD } = open('tripo', whole({ code: 9999, message: 'hm' }))
    const error = await errorOf(threeD.start(callOf(MODEL, TEXT), SIGNAL))
    expect([error.code, error.detail.accepted]).toEqual(['bad_upstream_response', undefined])
  })

  test.each<[string, Partial<ThreeDOrder>]>([
    ['prompt', { image: URL_A, ...TEXT }],
    ['negative_prompt', { image: URL_A, negative_prompt: 'rain' }],
    ['images', { images: [URL_A, URL_A, URL_A, URL_A, URL_A] }],
    ['image', { image: PNG }], // no media reader for the upload
  ])('rejects the unsupported field %s before a request is sent', async (param, order) => {
    const { vendor, threeD } = open('tripo')
    const error = await errorOf(threeD.start(callOf(MODEL, order), SIGNAL))
    expect([error.status, error.detail.param, error.detail.accepted]).toEqual([400, param, 'no'])
    expect(vendor.requests).toHaveLength(0)
  })
})

const FAL_ID = '80e732af-660e-45cd-bd63-580e4f2a94cc'
const FAL_PATH = `/fal-ai/hunyuan3d-v3/requests/${FAL_ID}`
const FAL_FILES = (name: string) => `https://v3b.fal.media/files/b/0a865ab1/${name}`

describe('fal', () => {
  const operation: Json = { path: FAL_PATH, format: 'glb' }

  test('one provider generates videos and 3D models', () => {
    const { video, threeD } = createProvider(partsOf({ kind: 'fal' }, { FAL_KEY: KEY }))
    expect([typeof video?.start, typeof threeD?.start]).toEqual(['function', 'function'])
  })

  test('an order goes to the path of the model; polls go to the path in the response, below the base URL', async () => {
    const order = {
      prompt: 'A red kite',
      pbr: true,
      target_polycount: 50_000,
      metadata: { fal: { polygon_type: 'quad' } },
    }
    const { vendor, threeD } = open(
      'fal',
      whole(fixture('fal', '3d-accepted')),
      whole(fixture('fal', '3d-in-queue')),
      whole(fixture('fal', '3d-completed')),
      whole(fixture('fal', '3d-hunyuan')),
    )
    expect(await threeD.start(callOf('fal-ai/hunyuan3d-v3/text-to-3d', order), SIGNAL)).toEqual({ operation })
    expect(vendor.requests[0]?.json()).toEqual({
      prompt: 'A red kite',
      enable_pbr: true,
      face_count: 50_000,
      polygon_type: 'quad',
    })
    expect(await threeD.status(operation, SIGNAL)).toEqual({ status: 'QUEUED' })
    expect(await threeD.status(operation, SIGNAL)).toEqual({
      status: 'SUCCESS',
      outputs: [
        { url: FAL_FILES('model.glb'), content_type: GLB },
        { url: FAL_FILES('model.obj'), content_type: 'model/obj' },
        { url: FAL_FILES('preview.png'), content_type: 'image/png' },
      ],
    })
    expect(vendor.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /fal-ai/hunyuan3d-v3/text-to-3d',
      `GET ${FAL_PATH}/status`,
      `GET ${FAL_PATH}/status`,
      `GET ${FAL_PATH}`,
    ])
    for (const { headers } of vendor.requests) expect(headers.authorization).toBe(`Key ${KEY}`)
  })

  test.each<[string, unknown]>([
    ['returns no response_url', undefined],
    ['returns another host', 'https://evil.example/steal'],
    ['returns a path with ..', `https://queue.fal.run/../admin/requests/${FAL_ID}`],
  ])('polls the path of the app when the vendor %s', async (_, response_url) => {
    const { threeD } = open('fal', whole({ request_id: FAL_ID, response_url }))
    const { operation } = await threeD.start(callOf('fal-ai/hunyuan3d-v3/text-to-3d', { prompt: 'A kite' }), SIGNAL)
    expect(operation).toEqual({ path: FAL_PATH, format: 'glb' })
  })

  const VIEWS = [URL_A, 'https://files.example/l.png', 'https://files.example/b.png']
  test.each<[string, Partial<ThreeDOrder>, Record<string, unknown>]>([
    ['fal-ai/trellis', { image: PNG, seed: 3 }, { image_url: PNG_URI, seed: 3 }],
    ['fal-ai/trellis/multi', { images: VIEWS }, { image_urls: VIEWS }],
    ['fal-ai/trellis-2', { image: URL_A, target_polycount: 9 }, { image_url: URL_A, decimation_target: 9 }],
    ['fal-ai/hunyuan3d/v2', { image: URL_A, texture: true }, { input_image_url: URL_A, textured_mesh: true }],
    [
      'fal-ai/hunyuan-3d/v3.1/pro/image-to-3d',
      { images: VIEWS, texture: false },
      {
        input_image_url: VIEWS[0],
        left_image_url: VIEWS[1],
        back_image_url: VIEWS[2],
        generate_type: 'Geometry',
      },
    ],
    [
      'fal-ai/hunyuan-3d/v3.1/rapid/text-to-3d',
      { prompt: 'A kite', texture: false, pbr: false },
      { prompt: 'A kite', enable_geometry: true, enable_pbr: false },
    ],
    [
      'fal-ai/meshy/v6/text-to-3d',
      { prompt: 'A kite', texture: false, target_polycount: 300 },
      { prompt: 'A kite', mode: 'preview', target_polycount: 300 },
    ],
    [
      'fal-ai/meshy/v6/image-to-3d',
      { image: URL_A, texture: true, pbr: true },
      { image_url: URL_A, should_texture: true, enable_pbr: true },
    ],
    [
      'tripo3d/h3.1/text-to-3d',
      { prompt: 'A kite', negative_prompt: 'rain', texture: false, target_polycount: 900, seed: 5 },
      { prompt: 'A kite', negative_prompt: 'rain', texture: false, pbr: false, face_limit: 900, model_seed: 5 },
    ],
    ['tripo3d/tripo/v2.5/image-to-3d', { image: URL_A, texture: true }, { image_url: URL_A, texture: 'standard' }],
    [
      'tripo3d/tripo/v2.5/multiview-to-3d',
      { images: VIEWS, texture: false },
      { front_image_url: VIEWS[0], left_image_url: VIEWS[1], back_image_url: VIEWS[2], texture: 'no', pbr: false },
    ],
    [
      'fal-ai/hyper3d/rodin/v2',
      { prompt: 'A kite', image: URL_A, pbr: true, format: 'usdz' },
      { prompt: 'A kite', input_image_urls: [URL_A], material: 'PBR', geometry_file_format: 'usdz' },
    ],
    ['fal-ai/not-known-yet', { prompt: 'A kite', image: URL_A }, { prompt: 'A kite', image_url: URL_A }],
  ])('%s gets the fields of its own API for %p', async (model, order, body) => {
    expect(await bodyOf('fal', model, order)).toMatchObject({ path: `/${model}`, body })
    expect((await vendor?.request())?.json()).toEqual(body)
  })

  test.each<[string, string, Partial<ThreeDOrder>]>([
    ['prompt', 'fal-ai/trellis', { prompt: 'A kite', image: URL_A }],
    ['pbr', 'fal-ai/trellis', { image: URL_A, pbr: true }],
    ['target_polycount', 'fal-ai/hunyuan-3d/v3.1/rapid/text-to-3d', { prompt: 'A kite', target_polycount: 9 }],
    ['texture', 'fal-ai/not-known-yet', { prompt: 'A kite', texture: false }],
    ['negative_prompt', 'fal-ai/meshy/v6/text-to-3d', { prompt: 'A kite', negative_prompt: 'rain' }],
  ])('rejects the unsupported field %s of %s before a request is sent', async (param, model, order) => {
    const { vendor, threeD } = open('fal')
    const error = await errorOf(threeD.start(callOf(model, order), SIGNAL))
    expect([error.code, error.detail.param, error.detail.accepted]).toEqual(['unsupported_parameter', param, 'no'])
    expect(vendor.requests).toHaveLength(0)
  })

  const result = (name: string, format = 'glb'): Promise<TaskProgress> => {
    const { threeD } = open('fal', whole(fixture('fal', '3d-completed')), whole(fixture('fal', name)))
    return threeD.status({ path: FAL_PATH, format }, SIGNAL)
  }

  test.each<[string, string, { url: string; content_type: string }[]]>([
    ['3d-trellis', 'glb', [{ url: FAL_FILES('mesh.glb'), content_type: GLB }]],
    [
      '3d-tripo',
      'glb',
      [
        { url: FAL_FILES('pbr.glb'), content_type: GLB },
        { url: FAL_FILES('view.webp'), content_type: 'image/webp' },
      ],
    ],
    ['3d-rodin', 'usdz', [{ url: FAL_FILES('base.usdz'), content_type: 'model/vnd.usdz+zip' }]],
  ])('finds the files in the result %s', async (name, format, outputs) => {
    expect(await result(name, format)).toEqual({ status: 'SUCCESS', outputs })
  })

  test.each([
    ['3d-nothing', 'glb'],
    ['3d-trellis', 'fbx'],
  ])('a result (%s) without the requested format (%s) has failed', async (name, format) => {
    expect(await result(name, format)).toMatchObject({ status: 'FAILURE', fail_code: 'no_output' })
  })

  test.each<[string, number, unknown, string]>([
    [
      'refused content',
      422,
      { detail: [{ type: 'content_policy_violation', msg: 'No.' }] },
      'content_policy_violation',
    ],
    [
      'an image that could not be downloaded',
      422,
      { detail: [{ type: 'file_download_error', msg: 'No.' }] },
      'input_media_invalid',
    ],
    ['an invalid field', 422, { detail: [{ type: 'missing', msg: 'Field required' }] }, 'invalid_input'],
    ['an error of the model', 500, { detail: [{ type: 'internal_server_error', msg: 'Oops.' }] }, 'upstream_error'],
  ])('a result with %s ends the task', async (_, status, body, fail_code) => {
    const { threeD } = open('fal', whole(fixture('fal', '3d-completed')), whole(body, { status }))
    expect(await threeD.status(operation, SIGNAL)).toMatchObject({ status: 'FAILURE', fail_code })
  })

  test('an error in the queue status ends the task; an unavailable result does not', async () => {
    const away = whole({ detail: 'Internal error' }, { status: 500 })
    const { threeD } = open(
      'fal',
      whole(fixture('fal', '3d-completed-error')),
      away,
      whole(fixture('fal', '3d-completed')),
      away,
    )
    expect(await threeD.status(operation, SIGNAL)).toEqual({
      status: 'FAILURE',
      fail_code: 'upstream_error',
      fail_reason: 'The runner was disconnected.',
    })
    expect((await errorOf(threeD.status(operation, SIGNAL))).code).toBe('bad_upstream_response')
  })

  test('cancels a task, unless the vendor refuses', async () => {
    const { vendor, threeD } = open(
      'fal',
      whole({ status: 'CANCELLATION_REQUESTED' }, { status: 202 }),
      whole({ status: 'ALREADY_COMPLETED' }, { status: 400 }),
    )
    await threeD.cancel?.(operation, SIGNAL)
    expect(vendor.requests[0]).toMatchObject({ method: 'PUT', path: `${FAL_PATH}/cancel` })
    await errorOf(threeD.cancel?.(operation, SIGNAL))
  })

  test('redacts a key from the environment in errors', async () => {
    vendor = startVendor(whole({ detail: `key ${KEY} is not valid` }, { status: 400 }))
    const { threeD } = createProvider(partsOf({ kind: 'fal', base_url: vendor.origin }, { FAL_API_KEY: KEY }))
    const error = await errorOf(threeD?.start(callOf('fal-ai/trellis', { image: URL_A }), SIGNAL))
    expect(vendor.requests[0]?.headers.authorization).toBe(`Key ${KEY}`)
    expect(error.message).not.toContain(KEY)
  })
})

const SHARED: [Kind, { call: ThreeDCall; operation: Json; accepted: string; running: string }][] = [
  [
    'meshy',
    {
      call: callOf('meshy-6', { image: URL_A }),
      operation: { way: 'image', id: MESHY_ID, model: 'meshy-6', format: 'glb' },
      accepted: 'accepted',
      running: 'running',
    },
  ],
  [
    'tripo',
    {
      call: callOf(MODEL, { prompt: 'A kite' }),
      operation: { id: TRIPO_ID, model: MODEL, format: 'glb' },
      accepted: 'accepted',
      running: 'running',
    },
  ],
  [
    'fal',
    {
      call: callOf('fal-ai/trellis', { image: URL_A }),
      operation: { path: FAL_PATH, format: 'glb' },
      accepted: '3d-accepted',
      running: '3d-in-progress',
    },
  ],
]

describe.each(SHARED)('%s tasks', (kind, { call, operation, accepted, running }) => {
  const unknownState = kind === 'tripo' ? { code: 0, data: { status: 'reviewing' } } : { status: 'REVIEWING' }

  test('an unknown state changes nothing', async () => {
    expect(await open(kind, whole(unknownState)).threeD.status(operation, SIGNAL)).toEqual({})
  })

  test('reports retry-after of a running task', async () => {
    const { threeD } = open(kind, whole(fixture(kind, running), { headers: { 'retry-after': '9' } }))
    expect(await threeD.status(operation, SIGNAL)).toMatchObject({ status: 'IN_PROGRESS', retry_after_seconds: 9 })
  })

  test.each<[string, Answer]>([
    ['text that is not JSON', whole('<html>', { headers: { 'content-type': 'text/html' } })],
    ['a list', whole([])],
    ['an object without a state', whole({})],
    ['404', whole({ message: 'not found' }, { status: 404 })],
    ['500', whole({ message: 'oops' }, { status: 500 })],
    ['429', whole({ message: 'slow down' }, { status: 429 })],
    ['a broken connection', reset()],
  ])('%s in place of a task state is an error without effect on the task', async (_, answer) => {
    const { threeD } = open(kind, answer)
    expect((await errorOf(threeD.status(operation, SIGNAL))).detail.accepted).toBeUndefined()
  })

  test.each<[string, Answer, 'no' | undefined]>([
    ['400', whole({ message: 'wrong' }, { status: 400 }), 'no'],
    ['429', whole({ message: 'slow down' }, { status: 429 }), 'no'],
    ['500', whole({ message: 'oops' }, { status: 500 }), undefined],
    ['503', whole({ message: 'later' }, { status: 503 }), undefined],
    ['409', whole({ message: 'conflict' }, { status: 409 }), undefined],
    ['307', whole('', { status: 307, headers: { location: 'https://elsewhere.example/x' } }), undefined],
    ['502', whole({ message: 'bad gateway' }, { status: 502 }), undefined],
    ['504', whole({ message: 'gateway timeout' }, { status: 504 }), undefined],
    ['text that is not JSON', whole('ok'), undefined],
    ['a response without an id', whole({ code: 0 }), undefined],
    ['a broken connection', reset(), undefined],
  ])('an order with the response %s has accepted %p', async (_, answer, expected) => {
    const { vendor, threeD } = open(kind, answer, whole(fixture(kind, accepted)))
    const error = await errorOf(threeD.start(call, SIGNAL))
    expect(error.detail.accepted).toBe(expected as 'no')
    expect(error.message).not.toContain(KEY)
    expect(vendor.requests).toHaveLength(1)
  })

  test('an order was not accepted when nobody was reached', async () => {
    const { vendor, threeD } = open(kind)
    await vendor.stop()
    expect((await errorOf(threeD.start(call, SIGNAL))).detail.accepted).toBe('no')
  })

  test('a stored operation of another kind is an error, and no request is sent', async () => {
    const { vendor, threeD } = open(kind)
    expect((await errorOf(threeD.status({}, SIGNAL))).code).toBe('internal_error')
    expect(vendor.requests).toHaveLength(0)
  })

  test('an order is announced right before it leaves, and is not sent if that fails', async () => {
    const { vendor, threeD } = open(kind, whole(fixture(kind, accepted)))
    const seen: number[] = []
    const beforeSend = async () => void seen.push(vendor.requests.length)
    await threeD.start({ ...call, beforeSend }, SIGNAL)
    expect([...seen, vendor.requests.length, threeD.awaits_before_send]).toEqual([0, 1, true])
    const refused = threeD.start({ ...call, beforeSend: async () => Promise.reject(new Error('full')) }, SIGNAL)
    expect((await errorOf(refused)).detail.accepted).toBe('no')
    expect(vendor.requests).toHaveLength(1)
  })

  test('has no safe resubmission', () => {
    expect(open(kind).threeD.resubmit).toBe('unsafe')
  })
})

test.each([
  ['meshy', 'MESHY_API_KEY'],
  ['tripo', 'TRIPO_API_KEY'],
  ['fal', 'FAL_KEY'],
] as const)('%s requires a key, and the error names %s', (kind, name) => {
  expect(() => createProvider(partsOf({ kind }))).toThrow(name)
  expect(() => createProvider(partsOf({ kind }, { [name]: KEY }))).not.toThrow()
  expect(() => createProvider(partsOf({ preset: kind }, { [name]: KEY }))).not.toThrow()
})
