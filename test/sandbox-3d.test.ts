/** 3D models of the sandbox: real files that other programs can read, rendered in another process. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Document, WebIO } from '@gltf-transform/core'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import validator from 'gltf-validator'
import { gridOf } from '../packages/sandbox/src/render/model-shape.ts'
import { createRenderWorkers } from '../packages/sandbox/src/render/workers.ts'
import { createTemporaryFiles } from '../packages/sandbox/src/temporary-files.ts'
import { createSandboxThreeD } from '../packages/sandbox/src/three-d.ts'
import type { TaskProgress, ThreeDCall } from '../src/providers/provider.ts'
import { simulatedErrors } from '../src/providers/sandbox.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { ThreeDOrder } from '../src/spec/three-d-request.ts'
import { manualClock } from './kit/clock.ts'

const signal = new AbortController().signal
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-3d-test-'))
const clock = manualClock()
const sandbox = createSandboxThreeD({
  clock,
  errors: simulatedErrors({ id: 'sandbox', clock }),
  renderWorkers: createRenderWorkers({ size: 1 }),
  files: createTemporaryFiles({ parent: directory }),
})
afterAll(async () => {
  await sandbox.close()
  expect(readdirSync(directory)).toEqual([])
  rmSync(directory, { recursive: true, force: true })
})

let orders = 0
type OrderFields = Partial<ThreeDOrder> & { key?: string }
const call = ({ key = `key_${orders++}`, ...fields }: OrderFields): ThreeDCall => ({
  model: 'text-to-3d',
  task_id: 'task_1',
  idempotency_key: key,
  request: { model: 'sandbox/text-to-3d', format: 'glb', prompt: 'A paper boat', target_polycount: 100, ...fields },
})

/** Polls until the end; returns all states. */
async function follow(fields: OrderFields): Promise<{ end: TaskProgress; seen: TaskProgress[] }> {
  const { operation } = await sandbox.start(call(fields), signal)
  const seen: TaskProgress[] = []
  for (;;) {
    // As it is stored: another process may poll.
    const progress = await sandbox.status(JSON.parse(JSON.stringify(operation)), signal)
    if (progress.status === 'SUCCESS' || progress.status === 'FAILURE') return { end: progress, seen }
    seen.push(progress)
    await Bun.sleep(5) // the renderer is a process of the real world; nothing here depends on how long this is
  }
}

type File = { content_type: string; bytes: Uint8Array<ArrayBuffer> }

async function render(fields: OrderFields): Promise<File[]> {
  const { end } = await follow(fields)
  if (end.status !== 'SUCCESS') throw new Error(JSON.stringify(end))
  return Promise.all(
    end.outputs.map(async (output) => {
      if (!('open' in output)) throw new Error('no file')
      const bytes = new Uint8Array(await new Response(await output.open(signal)).arrayBuffer())
      return { content_type: output.content_type, bytes }
    }),
  )
}

const first = async (fields: OrderFields): Promise<Uint8Array<ArrayBuffer>> => {
  const [file] = await render(fields)
  if (!file) throw new Error('no file')
  return file.bytes
}

async function checked(bytes: Uint8Array): Promise<{ document: Document; triangles: number }> {
  const { issues, info } = await validator.validateBytes(bytes)
  expect(issues.messages).toEqual([])
  expect(issues).toMatchObject({ numErrors: 0, numWarnings: 0 })
  return { document: await new WebIO().readBinary(bytes), triangles: info.totalTriangleCount }
}

const materialOf = (document: Document) => {
  const [material] = document.getRoot().listMaterials()
  if (!material) throw new Error('no material')
  return material
}

async function pixelsOf(png: Uint8Array) {
  const image = await loadImage(png)
  const canvas = createCanvas(image.width, image.height)
  canvas.getContext('2d').drawImage(image, 0, 0)
  return { width: image.width, height: image.height, data: Buffer.from(canvas.data()) }
}

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.catch((reason: unknown) => reason)
  if (error instanceof GatewayError) return error
  throw new Error('it was answered')
}

test('an order ends although the clock was set back after it', async () => {
  const { operation } = await sandbox.start(call({ prompt: '@sandbox quick=1\nA boat' }), signal)
  clock.jump(-7_200_000)
  try {
    expect((await sandbox.status(operation, signal)).status).toBe('SUCCESS')
  } finally {
    clock.jump(7_200_000)
  }
})

describe('a GLB of the sandbox', () => {
  test('passes the validator, has a texture, and has a preview as its last file', async () => {
    const [model, preview, ...more] = await render({ target_polycount: 2_000 })
    expect(more).toEqual([])
    expect(model?.content_type).toBe('model/gltf-binary')
    const { document } = await checked(model?.bytes ?? new Uint8Array())
    const texture = materialOf(document).getBaseColorTexture()
    expect(texture?.getMimeType()).toBe('image/png')
    expect(texture?.getSize()).toEqual([2048, 1024])
    expect(preview?.content_type).toBe('image/png')
    const { width, height, data } = await pixelsOf(preview?.bytes ?? new Uint8Array())
    expect([width, height]).toEqual([640, 640])
    expect(new Set(data.subarray(0, 640 * 640 * 4)).size).toBeGreaterThan(100)
  }, 120_000)

  test('shows its prompt in white on the texture, and another prompt has another texture', async () => {
    const textureOf = async (prompt: string) => {
      const { document } = await checked(await first({ prompt, seed: 7 }))
      return pixelsOf(materialOf(document).getBaseColorTexture()?.getImage() ?? new Uint8Array())
    }
    const [boat, none] = [await textureOf('A paper boat'), await textureOf('.')]
    /** White pixels in the middle of the front. */
    const letters = ({ width, height, data }: typeof boat) => {
      let count = 0
      for (let y = height * 0.4; y < height * 0.6; y++) {
        for (let x = width * 0.12; x < width * 0.38; x++) {
          const at = (Math.floor(y) * width + Math.floor(x)) * 4
          if (data[at] === 255 && data[at + 1] === 255 && data[at + 2] === 255) count++
        }
      }
      return count
    }
    expect(letters(boat)).toBeGreaterThan(10 * Math.max(1, letters(none)))
  }, 120_000)

  test('has the maps of physically based rendering, and their tangents, only if requested', async () => {
    const { document } = await checked(await first({ pbr: true, prompt: '@sandbox quick=1\nA boat' }))
    const material = materialOf(document)
    expect(material.getNormalTexture()).not.toBeNull()
    expect(material.getMetallicRoughnessTexture()).not.toBeNull()
    expect(material.getOcclusionTexture()).not.toBeNull()
    const [mesh] = document.getRoot().listMeshes()
    expect(mesh?.listPrimitives()[0]?.listSemantics()).toContain('TANGENT')
    const plain = materialOf((await checked(await first({ prompt: '@sandbox quick=1\nA boat' }))).document)
    expect(plain.getNormalTexture()).toBeNull()
    expect(plain.getBaseColorTexture()).not.toBeNull()
    const bare = await checked(await first({ texture: false, prompt: '@sandbox quick=1\nA boat' }))
    expect(bare.document.getRoot().listTextures()).toEqual([])
  }, 120_000)

  test.each([100, 101, 4_999, 100_000])(
    'of %i polygons has at most so many, and hardly fewer',
    async (target_polycount) => {
      const { triangles } = await checked(await first({ target_polycount, texture: false }))
      expect(triangles).toBeLessThanOrEqual(target_polycount)
      expect(triangles).toBeGreaterThan(target_polycount * 0.97 - 2)
    },
  )

  test('is the same for the same seed, and another shape for another seed', async () => {
    const shapeOf = async (fields: OrderFields) => {
      const { document } = await checked(await first({ texture: false, ...fields }))
      return [...(document.getRoot().listMeshes()[0]?.listPrimitives()[0]?.getAttribute('POSITION')?.getArray() ?? [])]
    }
    const one = await shapeOf({ seed: 1 })
    expect(one.length).toBeGreaterThan(100)
    expect(await shapeOf({ seed: 1 })).toEqual(one)
    expect(await shapeOf({ seed: 2 })).not.toEqual(one)
  })
})

describe('a surface', () => {
  test('is closed: each edge belongs to two triangles in opposite directions', async () => {
    const { document } = await checked(await first({ texture: false, target_polycount: 300 }))
    const primitive = document.getRoot().listMeshes()[0]?.listPrimitives()[0]
    const positions = primitive?.getAttribute('POSITION')?.getArray() ?? []
    const triangles = primitive?.getIndices()?.getArray() ?? []
    const place = (vertex: number) =>
      [0, 1, 2].map((part) => (positions[vertex * 3 + part] ?? 0).toFixed(4).replace('-0.0000', '0.0000')).join()
    const edges = new Set<string>()
    for (let at = 0; at < triangles.length; at += 3) {
      const [a = '', b = '', c = ''] = [0, 1, 2].map((part) => place(triangles[at + part] ?? 0))
      for (const edge of [`${a} ${b}`, `${b} ${c}`, `${c} ${a}`]) {
        expect(edges.has(edge)).toBe(false)
        edges.add(edge)
      }
    }
    for (const edge of edges) expect(edges.has(edge.split(' ').reverse().join(' '))).toBe(true)
  })

  test('uses the grid with the most triangles within the limit', () => {
    for (let polygons = 100; polygons < 3_000; polygons += 7) {
      const { segments, rings } = gridOf(polygons)
      const triangles = 2 * segments * (rings - 1)
      expect(triangles).toBeLessThanOrEqual(polygons)
      expect(triangles).toBeGreaterThan(polygons * 0.95 - 3)
      expect(segments / rings).toBeGreaterThan(0.8)
      expect(segments / rings).toBeLessThan(4)
    }
  })
})

describe('other formats', () => {
  test('OBJ has a material and textures that refer to each other by the names of the downloads', async () => {
    const files = await render({ format: 'obj', pbr: true, prompt: '@sandbox quick=1\nA boat' })
    expect(files.map(({ content_type }) => content_type)).toEqual([
      'model/obj',
      'model/mtl',
      'image/png',
      'image/png',
      'image/png',
      'image/png',
    ])
    const [obj = '', mtl = ''] = files.slice(0, 2).map(({ bytes }) => new TextDecoder().decode(bytes))
    const count = (start: string) => obj.split('\n').filter((line) => line.startsWith(start)).length
    expect(obj).toContain('mtllib task_1-1.mtl\n')
    expect(count('f ')).toBe(100)
    expect(count('v ')).toBe(count('vt '))
    expect(count('v ')).toBe(count('vn '))
    const corners = obj.match(/\d+(?=\/)/g)?.map(Number) ?? []
    expect(Math.min(...corners)).toBe(1)
    expect(Math.max(...corners)).toBe(count('v '))
    expect(mtl).toContain('map_Kd task_1-2.png\n')
    expect(mtl).toContain('map_Pr -imfchan g task_1-3.png\n')
    expect(mtl).toContain('norm task_1-4.png\n')
  })

  test('OBJ without a texture refers to none', async () => {
    const files = await render({ format: 'obj', texture: false, prompt: '@sandbox quick=1\nA boat' })
    expect(files.map(({ content_type }) => content_type)).toEqual(['model/obj', 'model/mtl', 'image/png'])
    const [obj = '', mtl = ''] = files.slice(0, 2).map(({ bytes }) => new TextDecoder().decode(bytes))
    expect(mtl).not.toContain('map_')
    expect(obj).not.toContain('vt ')
    expect(obj).toMatch(/^f \d+\/\/\d+ /m)
  })

  test('STL is binary, has as many triangles as its header says, and all face outward', async () => {
    const [model, preview] = await render({ format: 'stl', target_polycount: 500 })
    expect([model?.content_type, preview?.content_type]).toEqual(['model/stl', 'image/png'])
    const bytes = model?.bytes ?? new Uint8Array()
    const view = new DataView(bytes.buffer)
    const count = view.getUint32(80, true)
    expect(bytes.length).toBe(84 + count * 50)
    expect(count).toBeGreaterThan(480)
    let volume = 0
    for (let at = 84; at < bytes.length; at += 50) {
      const [nx, ny, nz, ax, ay, az, bx, by, bz, cx, cy, cz] = Array.from({ length: 12 }, (_, place) =>
        view.getFloat32(at + place * 4, true),
      ) as [number, number, number, number, number, number, number, number, number, number, number, number]
      expect(Math.hypot(nx, ny, nz)).toBeCloseTo(1, 4)
      volume += (ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)) / 6
    }
    // The volume of a closed surface is positive only if its triangles face outward.
    expect(volume).toBeGreaterThan(1)
  })
})

describe('an order', () => {
  test.each([
    [{ image: 'https://a.test/a.png' }, 'image'],
    [{ images: ['https://a.test/a.png'] }, 'images'],
    [{ negative_prompt: 'rain' }, 'negative_prompt'],
    [{ format: 'fbx' as const }, 'format'],
    [{ format: 'usdz' as const }, 'format'],
    [{ target_polycount: 99 }, 'target_polycount'],
    [{ target_polycount: 100_001 }, 'target_polycount'],
    [{ prompt: '@sandbox frobnicate=1' }, 'prompt'],
  ])('of %p is rejected with its field, as not accepted', async (fields, param) => {
    const error = await refusal(sandbox.start(call(fields), signal))
    expect(error.detail).toMatchObject({ param, accepted: 'no' })
  })

  test('fails as its directives request', async () => {
    const prompt = (directives: string) => `@sandbox ${directives}\nA boat`
    expect((await follow({ prompt: prompt('fail=content_policy_violation') })).end).toMatchObject({
      status: 'FAILURE',
      fail_code: 'content_policy_violation',
      fail_reason: 'The simulated provider could not make the 3D model, as "@sandbox fail" requested.',
    })
    expect((await follow({ prompt: prompt('no_output=1') })).end).toEqual({ status: 'SUCCESS', outputs: [] })
    const status = await refusal(sandbox.start(call({ prompt: prompt('status=429 retry_after=7') }), signal))
    expect(status).toMatchObject({ code: 'rate_limit_exceeded', detail: { retry_after: 7, accepted: 'no' } })
    const lost = call({ prompt: prompt('lose=1 quick=1') })
    expect((await refusal(sandbox.start(lost, signal))).detail.accepted).toBeUndefined()
    // The same order with the same key is the accepted one.
    expect(await sandbox.start(lost, signal)).toMatchObject({ operation: { format: 'glb' } })
  })

  test('progresses from waiting to running to done, and can be canceled', async () => {
    const { operation } = await sandbox.start(
      call({ prompt: '@sandbox queue_ms=2000 render_ms=10000\nA boat' }),
      signal,
    )
    const ask = () => sandbox.status(operation, signal)
    expect(await ask()).toEqual({ status: 'QUEUED', progress: 0 })
    clock.advance(2_000)
    expect(await ask()).toEqual({ status: 'IN_PROGRESS', progress: 0 })
    await sandbox.cancel?.(operation, signal)
    expect(await ask()).toMatchObject({ status: 'FAILURE', fail_code: 'canceled' })
    const strange = await refusal(sandbox.status({ id: 'none' }, signal))
    expect(strange.code).toBe('bad_upstream_response')
  })
})
