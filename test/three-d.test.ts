/** 3D models through the whole gateway: ordered, polled, downloaded, listed, canceled; of the sandbox and of Meshy. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import validator from 'gltf-validator'
import { DEFAULT_OUTPUTS } from '../src/config/config.ts'
import type { TaskAnswer, TaskData, TaskList } from '../src/spec/task.ts'
import type { TaskErrorBody } from '../src/spec/task-error.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type MeshyVendor, startMeshyVendor } from './kit/meshy-vendor.ts'
import { TINY_GLB } from './kit/tiny-files.ts'
import { startVendor, type Vendor, whole } from './kit/vendor.ts'

const PATH = '/v1/3d/generations'
const MODEL = 'sandbox/text-to-3d'
const QUICK = '@sandbox quick=1\n'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-three-d-'))
let gateway: TestGateway
let meshy: MeshyVendor
let upstream: Vendor

beforeAll(async () => {
  meshy = startMeshyVendor({ polls: 2, refusesFirst: (prompt, mode) => mode === 'refine' && prompt.includes('busy') })
  upstream = startVendor()
  gateway = await startGateway({
    outputs: { ...DEFAULT_OUTPUTS, directory },
    providers: {
      meshy: { kind: 'meshy', base_url: meshy.url, key: 'msy_key' },
      views: { kind: 'meshy', base_url: `${upstream.origin}/openapi`, key: 'msy_key' },
    },
    models: {
      'meshy/meshy-6': {
        families: ['3d-generation'],
        three_d: { format: { values: ['glb', 'obj'] }, target_polycount: { minimum: 100, maximum: 300_000 } },
      },
      'views/meshy-6': { families: ['3d-generation'] },
    },
  })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await Promise.all([meshy.stop(), upstream.stop()])
  rmSync(directory, { recursive: true, force: true })
})

async function order(json: object, headers: Record<string, string> = {}): Promise<string> {
  const answer = await gateway.call(PATH, { json, headers })
  expect(answer.status).toBe(200)
  const body = (await answer.json()) as { code: string; data: { task_id: string }; message: string; fail_code: string }
  expect(body).toEqual({ code: 'success', data: { task_id: body.data.task_id }, message: '', fail_code: '' })
  return body.data.task_id
}

const ask = async (task_id: string): Promise<TaskData> =>
  ((await (await gateway.call(`${PATH}/${task_id}`)).json()) as TaskAnswer).data

/** Advances time until it has ended. */
async function ended(task_id: string): Promise<TaskData> {
  for (let turn = 0; turn < 400; turn++) {
    await gateway.instance.tasks.idle()
    const data = await ask(task_id)
    if (data.status === 'SUCCESS' || data.status === 'FAILURE') return data
    gateway.clock.advance(500)
  }
  throw new Error('it did not end')
}

const pathOf = (url = '') => url.slice('http://gatehouse.test'.length)
const withoutToken = (url: string | undefined, headers: Record<string, string> = {}) =>
  gateway.call(pathOf(url), { headers: { authorization: '', ...headers } })
const refusalOf = async (answer: Response) => ({ status: answer.status, ...((await answer.json()) as TaskErrorBody) })

describe('a 3D model of the sandbox', () => {
  test('is ordered without a key, generated, and downloaded by links that need no token', async () => {
    const task_id = await order({ model: MODEL, prompt: `${QUICK}A paper boat`, pbr: true })
    expect(task_id).toMatch(/^task_[A-Za-z0-9]{32}$/)
    const data = await ended(task_id)
    expect(data).toMatchObject({ status: 'SUCCESS', progress: '100%', fail_code: '', result_url: data.outputs?.[0] })
    const [model, preview, ...more] = data.outputs ?? []
    expect(more).toEqual([])
    expect(pathOf(model)).toStartWith(`${PATH}/${task_id}/content?expires=`)
    expect(pathOf(preview)).toStartWith(`${PATH}/${task_id}/content?index=1&expires=`)
    const glb = await withoutToken(model)
    expect(Object.fromEntries(glb.headers)).toMatchObject({
      'content-type': 'model/gltf-binary',
      'content-disposition': `inline; filename="${task_id}.glb"`,
      'accept-ranges': 'bytes',
    })
    const { issues } = await validator.validateBytes(new Uint8Array(await glb.arrayBuffer()))
    expect(issues).toMatchObject({ numErrors: 0, numWarnings: 0 })
    const png = await withoutToken(preview)
    expect(png.headers.get('content-type')).toBe('image/png')
    expect(png.headers.get('content-disposition')).toBe(`inline; filename="${task_id}-1.png"`)
    const part = await withoutToken(model, { range: 'bytes=0-3' })
    expect([part.status, await part.text()]).toEqual([206, 'glTF'])
  })

  test('as OBJ refers to its other files by their download names', async () => {
    const task_id = await order({ model: MODEL, prompt: `${QUICK}A boat`, format: 'obj' })
    const files = await Promise.all(
      ((await ended(task_id)).outputs ?? []).map(async (url) => {
        const answer = await withoutToken(url)
        const [, name = ''] = /filename="(.*)"/.exec(answer.headers.get('content-disposition') ?? '') ?? []
        return { name, type: answer.headers.get('content-type'), text: await answer.text() }
      }),
    )
    expect(files.map(({ name, type }) => [name, type])).toEqual([
      [`${task_id}.obj`, 'model/obj'],
      [`${task_id}-1.mtl`, 'model/mtl'],
      [`${task_id}-2.png`, 'image/png'],
      [`${task_id}-3.png`, 'image/png'],
    ])
    expect(files[0]?.text).toContain(`mtllib ${files[1]?.name}\n`)
    expect(files[1]?.text).toContain(`map_Kd ${files[2]?.name}\n`)
  })

  test('may be ordered by a form, with its fields as text', async () => {
    const form = new FormData()
    for (const [name, value] of [
      ['model', MODEL],
      ['prompt', `${QUICK}A boat`],
      ['texture', 'false'],
      ['target_polycount', '120'],
      ['metadata[meshy][topology]', 'quad'],
    ] as const) {
      form.set(name, value)
    }
    const request = new Request(`http://gatehouse.test${PATH}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}` },
      body: form,
    })
    const answer = (await (await gateway.instance.fetch(request)).json()) as { data: { task_id: string } }
    const [model] = (await ended(answer.data.task_id)).outputs ?? []
    const { info } = await validator.validateBytes(new Uint8Array(await (await withoutToken(model)).arrayBuffer()))
    expect(info.hasTextures).toBe(false)
  })

  test('can be canceled in progress', async () => {
    const task_id = await order({ model: MODEL, prompt: '@sandbox hang=1\nA boat' })
    const canceled = await gateway.call(`${PATH}/${task_id}/cancel`, { method: 'POST' })
    expect(await canceled.json()).toMatchObject({ code: 'success', message: 'The task is being canceled.' })
    expect(await ended(task_id)).toMatchObject({ status: 'FAILURE', fail_code: 'canceled' })
  })

  test('fails with the fail codes of tasks', async () => {
    const task_id = await order({ model: MODEL, prompt: '@sandbox no_output=1\nA boat' })
    expect(await ended(task_id)).toMatchObject({ status: 'FAILURE', fail_code: 'no_output', progress: '100%' })
    const answer = await gateway.call(`${PATH}/${task_id}/content`)
    expect(await refusalOf(answer)).toMatchObject({ status: 404, code: 'output_not_found', fail_code: 'no_output' })
  })

  test('is created once for one key, which is rejected for another request', async () => {
    const headers = { 'idempotency-key': 'boat-1' }
    const json = { model: MODEL, prompt: `${QUICK}A boat` }
    const first = await order(json, headers)
    expect(await order(json, headers)).toBe(first)
    expect(await refusalOf(await gateway.call(PATH, { json: { ...json, seed: 1 }, headers }))).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    })
    // The same fields for a video are another request.
    const video = await gateway.call('/v1/video/generations', {
      json: { model: 'sandbox/text-to-video', prompt: json.prompt },
      headers,
    })
    expect(video.status).toBe(422)
  })
})

describe('an invalid request for a 3D model', () => {
  test('is rejected with its field, in the form of tasks', async () => {
    const cases: [object, number, string, string | null][] = [
      [{ prompt: 'a' }, 400, 'missing_required_parameter', 'model'],
      [{ model: MODEL }, 400, 'missing_required_parameter', 'prompt'],
      [{ model: MODEL, prompt: 'a', image: 'https://a.example/a.png' }, 400, 'unsupported_parameter', 'image'],
      [{ model: MODEL, prompt: 'a', format: 'fbx' }, 400, 'invalid_value', 'format'],
      [{ model: MODEL, prompt: 'a', format: 'step' }, 400, 'invalid_value', 'format'],
      [{ model: MODEL, prompt: 'a', texture: 'yes' }, 400, 'invalid_type', 'texture'],
      [{ model: MODEL, prompt: 'a', texture: false, pbr: true }, 400, 'invalid_value', 'pbr'],
      [{ model: MODEL, prompt: 'a', target_polycount: 99 }, 400, 'invalid_value', 'target_polycount'],
      [{ model: MODEL, prompt: 'a', target_polycount: 100_001 }, 400, 'invalid_value', 'target_polycount'],
      [{ model: MODEL, prompt: 'a', target_polycount: 100.5 }, 400, 'invalid_type', 'target_polycount'],
      [{ model: MODEL, prompt: 'a', seed: -1 }, 400, 'invalid_value', 'seed'],
      [{ model: MODEL, prompt: 'a', images: [] }, 400, 'invalid_value', 'images'],
      [{ model: MODEL, prompt: 'a', callback_url: 'ftp://a' }, 400, 'invalid_value', 'callback_url'],
      [{ model: 'sandbox/text-to-video', prompt: 'a' }, 400, 'unsupported_endpoint', 'model'],
      [{ model: 'sandbox/none', prompt: 'a' }, 404, 'model_not_found', 'model'],
    ]
    for (const [json, status, code, param] of cases) {
      const { error, ...flat } = await refusalOf(await gateway.call(PATH, { json }))
      expect([json, flat.status, flat.code, error.param]).toEqual([json, status, code, param])
      expect(flat.data).toBeNull()
      expect(flat.message).toBe(error.message)
    }
    const list = await refusalOf(await gateway.call(PATH, { json: [] }))
    expect(list).toMatchObject({ status: 400, code: 'invalid_type' })
    // Null and unknown fields are ignored.
    await order({ model: MODEL, prompt: `${QUICK}a`, image: null, images: null, texture: null, colour: 'red' })
  })

  test('cannot read a task through another API', async () => {
    const video = await gateway.call('/v1/videos', {
      json: { model: 'sandbox/text-to-video', prompt: '@sandbox hang=1\na' },
    })
    const { id } = (await video.json()) as { id: string }
    const solid = await order({ model: MODEL, prompt: '@sandbox hang=1\na' })
    for (const path of [
      `${PATH}/${id}`,
      `${PATH}/${id}/content`,
      `/v1/videos/${solid}`,
      `/v1/video/generations/${solid}`,
    ]) {
      expect([path, await refusalOf(await gateway.call(path))]).toMatchObject([
        path,
        { status: 404, code: 'task_not_exist' },
      ])
    }
    for (const path of [`${PATH}/${id}/cancel`, `/v1/video/generations/${solid}/cancel`]) {
      const answer = await gateway.call(path, { method: 'POST' })
      expect([path, answer.status]).toEqual([path, 404])
    }
    expect((await gateway.call(`/v1/videos/${solid}`, { method: 'DELETE' })).status).toBe(404)
    const listed = async (path: string) =>
      ((await (await gateway.call(`${path}?limit=100`)).json()) as TaskList).data.tasks.map(({ task_id }) => task_id)
    expect(await listed(PATH)).toContain(solid)
    expect(await listed(PATH)).not.toContain(id)
    expect(await listed('/v1/video/generations')).toEqual([id])
    const videos = (await (await gateway.call('/v1/videos')).json()) as { data: { id: string }[] }
    expect(videos.data.map((one) => one.id)).toEqual([id])
  })

  test('cannot open a file with a link of another API', async () => {
    const task_id = await order({ model: MODEL, prompt: `${QUICK}A boat` })
    const [model] = (await ended(task_id)).outputs ?? []
    const elsewhere = model?.replace('/v1/3d/generations/', '/v1/videos/')
    expect((await withoutToken(elsewhere)).status).toBe(404)
    expect((await withoutToken(model?.replace(/signature=./, 'signature=_'))).status).toBe(403)
    expect((await withoutToken(model)).status).toBe(200)
  })
})

describe('a 3D model of Meshy', () => {
  test('from text is generated in two orders, and its files are copied', async () => {
    const before = meshy.orders.length
    const task_id = await order({
      model: 'meshy/meshy-6',
      prompt: 'a busy harbour',
      pbr: true,
      target_polycount: 9_000,
    })
    const seen: string[] = []
    for (let turn = 0; turn < 60 && seen.at(-1) !== '100%'; turn++) {
      await gateway.instance.tasks.idle()
      const { progress } = await ask(task_id)
      if (progress !== seen.at(-1)) seen.push(progress)
      gateway.clock.advance(1_000)
    }
    expect(seen.map((text) => Number.parseInt(text, 10))).toEqual(
      seen.map((text) => Number.parseInt(text, 10)).toSorted((a, b) => a - b),
    )
    const data = await ask(task_id)
    expect(data.status).toBe('SUCCESS')
    const [preview, refine, ...more] = meshy.orders.slice(before)
    expect(more).toEqual([])
    expect([preview?.mode, refine?.mode, refine?.preview_id]).toEqual(['preview', 'refine', preview?.id])
    const [model, picture] = data.outputs ?? []
    const glb = await withoutToken(model)
    expect(glb.headers.get('content-type')).toBe('model/gltf-binary')
    expect(new Uint8Array(await glb.arrayBuffer())).toEqual(TINY_GLB)
    expect((await withoutToken(picture)).headers.get('content-type')).toBe('image/png')
  })

  test('without a texture is one order', async () => {
    const before = meshy.orders.length
    const task_id = await order({ model: 'meshy/meshy-6', prompt: 'a plain harbour', texture: false })
    expect(await ended(task_id)).toMatchObject({ status: 'SUCCESS' })
    expect(meshy.orders.slice(before).map(({ mode }) => mode)).toEqual(['preview'])
  })

  test('from an image may be uploaded in a form', async () => {
    const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
    upstream.otherwise(whole({ result: 'task-1' }, { status: 202 }))
    const form = new FormData()
    form.set('model', 'views/meshy-6')
    form.set('image', new File([PNG], 'kite.png', { type: 'image/png' }))
    const request = new Request(`http://gatehouse.test${PATH}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}` },
      body: form,
    })
    expect((await gateway.instance.fetch(request)).status).toBe(200)
    await gateway.instance.tasks.idle()
    expect(upstream.requests[0]?.path).toBe('/openapi/v1/image-to-3d')
    expect(upstream.requests[0]?.json()).toEqual({
      image_url: `data:image/png;base64,${Buffer.from(PNG).toString('base64')}`,
      ai_model: 'meshy-6',
      target_formats: ['glb'],
    })
  })
})
