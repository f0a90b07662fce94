/** Images and videos with the `@google/genai` package, by its key and as a client of Vertex AI, and the errors of both methods. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type GenerateVideosOperation, GoogleGenAI } from '@google/genai'
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2'
import { sniff } from '../src/kit/sniff.ts'
import { openPort, type Port } from './kit/served.ts'

let port: Port
let directory: string
beforeAll(async () => {
  port = await openPort()
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-videos-'))
})
afterAll(async () => {
  await port.close()
  await rm(directory, { recursive: true })
})
const origin = () => port.url.replace(/\/v1$/, '')
const QUICK = 'A paper boat\n@sandbox quick=1'
const bytesOf = (base64 = '') => new Uint8Array(Buffer.from(base64, 'base64'))

/** Resolves when the task of an operation has ended. */
async function end(name = ''): Promise<void> {
  const path = `/v1/video/generations/${name.split('/').at(-1)}?wait=30`
  let status = ''
  while (status !== 'SUCCESS' && status !== 'FAILURE')
    status = (await (await port.gateway.call(path)).json()).data.status
}

const Old = GoogleGenAI2 as unknown as typeof GoogleGenAI
// The newest major calls these methods as a client of Vertex AI only, the one before it images too.
const VERTEX = { vertexai: true }
const IMAGES: [string, typeof GoogleGenAI, object][] = [
  ['sdk 3, Vertex AI', GoogleGenAI, VERTEX],
  ['sdk 2, Vertex AI', Old, VERTEX],
]

const clientOf = (Client: typeof GoogleGenAI, more: object = {}) =>
  new Client({ apiKey: port.token, httpOptions: { baseUrl: origin() }, ...more })

async function ended(ai: GoogleGenAI, started: GenerateVideosOperation): Promise<GenerateVideosOperation> {
  await end(started.name)
  return ai.operations.getVideosOperation({ operation: started })
}

describe('@google/genai', () => {
  it.each(IMAGES)('%s: generates images', async (_, Client, more) => {
    const { generatedImages = [] } = await clientOf(Client, more).models.generateImages({
      model: 'sandbox/image',
      prompt: 'A lighthouse',
      config: { numberOfImages: 2, outputMimeType: 'image/jpeg' },
    })
    expect(generatedImages.map(({ image }) => image?.mimeType)).toEqual(['image/jpeg', 'image/jpeg'])
    for (const { image } of generatedImages) expect(sniff(bytesOf(image?.imageBytes))).toBe('image/jpeg')
  })

  it('sdk 2: generates a video, polls its operation and downloads its file', async () => {
    const ai = clientOf(Old)
    const config = { numberOfVideos: 1, durationSeconds: 4, aspectRatio: '9:16', resolution: '720p' }
    const started = await ai.models.generateVideos({ model: 'sandbox/text-to-video', prompt: QUICK, config })
    expect(started.name).toMatch(/^models\/sandbox\/text-to-video\/operations\/task_\w+$/)
    expect(started.done ?? false).toBe(false)
    const { done, response, error } = await ended(ai, started)
    expect([done, error, response?.generatedVideos?.length]).toEqual([true, undefined, 1])
    const file = response?.generatedVideos?.[0] as object
    const downloadPath = join(directory, 'video.mp4')
    await ai.files.download({ file, downloadPath })
    // The package pipes the file and does not wait for its end.
    while ((await Bun.file(downloadPath).exists()) === false || Bun.file(downloadPath).size < 64)
      await new Promise((resolve) => setImmediate(resolve))
    expect(sniff(new Uint8Array(await Bun.file(downloadPath).slice(0, 64).arrayBuffer()))).toBe('video/mp4')
  })

  it.each(IMAGES)('%s: generates a video, with a link to its file', async (_, Client, more) => {
    const ai = clientOf(Client, more)
    const started = await ai.models.generateVideos({ model: 'sandbox/text-to-video', prompt: QUICK, config: {} })
    const { done, response } = await ended(ai, started)
    const { uri = '', mimeType } = response?.generatedVideos?.[0]?.video ?? {}
    expect([done, mimeType]).toEqual([true, 'video/mp4'])
    const file = await fetch(uri) // without a token
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4'])
    await file.body?.cancel()
  })

  it.each([
    ['sdk 3, Vertex AI', GoogleGenAI, VERTEX],
    ['sdk 2', Old, {}],
  ] as const)('%s: reports a failed video in its operation', async (_, Client, more) => {
    const ai = clientOf(Client, more)
    const prompt = 'A boat\n@sandbox quick=1 fail=generation_failed'
    const started = await ai.models.generateVideos({ model: 'sandbox/text-to-video', prompt })
    const { done, error, response } = await ended(ai, started)
    expect([done, response]).toEqual([true, undefined])
    expect(error).toMatchObject({ code: 13, message: expect.any(String) })
  })

  it('sdk 2: reports a video that was withheld as filtered', async () => {
    const ai = clientOf(Old)
    const prompt = 'A boat\n@sandbox quick=1 fail=content_policy_violation'
    const started = await ai.models.generateVideos({ model: 'sandbox/text-to-video', prompt })
    const { done, error, response } = await ended(ai, started)
    expect([done, error]).toEqual([true, undefined])
    expect(response).toMatchObject({ raiMediaFilteredCount: 1, raiMediaFilteredReasons: [expect.any(String)] })
  })
})

describe('POST :predict and :predictLongRunning', () => {
  const post = async (path: string, json: unknown, headers: Record<string, string> = {}) => {
    const response = await port.gateway.call(path, { json, headers })
    return { status: response.status, body: await response.json(), headers: response.headers }
  }
  const IMAGE = '/v1beta/models/sandbox/image:predict'
  const VIDEO = '/v1beta/models/sandbox/text-to-video:predictLongRunning'
  const instances = [{ prompt: QUICK }]

  it.each([
    [IMAGE, {}, 'instances'],
    [IMAGE, { instances: [] }, 'instances'],
    [IMAGE, { instances: [...instances, ...instances] }, 'instances'],
    [IMAGE, { instances: [{ prompt: 7 }] }, 'instances[0].prompt'],
    [IMAGE, { instances, parameters: 7 }, 'parameters'],
    [IMAGE, { instances, parameters: { sampleCount: 99 } }, 'parameters.sampleCount'],
    [IMAGE, { instances, parameters: { sampleCount: 11 } }, 'parameters.sampleCount'],
    [
      IMAGE,
      { instances, parameters: { outputOptions: { mimeType: 'image/bmp' } } },
      'parameters.outputOptions.mimeType',
    ],
    [IMAGE, { instances, parameters: { negativePrompt: 'x' } }, 'parameters.negativePrompt'],
    [IMAGE, { instances, parameters: { sampleImageSize: '4K' } }, 'parameters.sampleImageSize'],
    [IMAGE, { instances, parameters: { storageUri: 'gs://a' } }, 'parameters.storageUri'],
    [VIDEO, { instances, parameters: { durationSeconds: 3 } }, 'parameters.durationSeconds'],
    [VIDEO, { instances, parameters: { resolution: '9p' } }, 'parameters.resolution'],
    [VIDEO, { instances, parameters: { aspectRatio: '9:1' } }, 'parameters.aspectRatio'],
    [VIDEO, { instances: [{ prompt: 'x', image: { uri: 'https://a.example/a.png' } }] }, 'instances[0].image'],
    [VIDEO, { instances: [{ prompt: 'x', lastFrame: {} }] }, 'instances[0].lastFrame'],
    [VIDEO, { instances: [{ prompt: 'x', referenceImages: [{ image: {} }] }] }, 'instances[0].referenceImages[0]'],
  ])('%s %j gets 400 that names the path', async (path, json, field) => {
    const { status, body } = await post(path, json)
    expect([status, body.error.status]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(body.error.message).toContain(`"${field}"`)
    expect(body.error.details[1].fieldViolations[0].field).toBe(field)
  })

  it('refuses a model of another family and an unknown one', async () => {
    expect((await post('/v1beta/models/sandbox/general:predict', { instances })).status).toBe(400)
    expect((await post('/v1beta/models/sandbox/image:predictLongRunning', { instances })).status).toBe(400)
    expect((await post('/v1beta/models/sandbox/none:predictLongRunning', { instances })).status).toBe(404)
  })

  it('returns the first operation for a repeated Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'video-1' }
    const [first, second] = [await post(VIDEO, { instances }, headers), await post(VIDEO, { instances }, headers)]
    expect(second.body.name).toBe(first.body.name)
    expect(second.headers.get('idempotent-replayed')).toBe('true')
  })

  it('shows operations and files to their token only', async () => {
    const { body } = await post(VIDEO, { instances })
    await end(body.name)
    const { response } = await (await port.gateway.call(`/v1beta/${body.name}`)).json()
    const { pathname, search } = new URL(response.generateVideoResponse.generatedSamples[0].video.uri)
    const other = { authorization: `Bearer ${await port.tokenFor(['*'])}` }
    for (const [headers, statuses] of [
      [{}, [200, 200, 200]],
      [other, [404, 404, 404]],
      [{ authorization: '' }, [401, 401, 401]],
    ] as const) {
      const answers = await Promise.all([
        port.gateway.call(`/v1beta/${body.name}`, { headers }),
        port.gateway.call('/v1beta1/publishers/sandbox/models/text-to-video:fetchPredictOperation', {
          json: { operationName: body.name },
          headers,
        }),
        port.gateway.call(`${pathname}${search}`, { headers }),
      ])
      expect(answers.map(({ status }) => status)).toEqual([...statuses])
    }
  })

  it('knows an operation by the name of its model, with or without its provider, and by no other', async () => {
    const { body } = await post(VIDEO, { instances })
    const status = async (model: string) =>
      (await port.gateway.call(`/v1beta/models/${model}/operations/${body.name.split('/').at(-1)}`)).status
    expect(await Promise.all(['sandbox/text-to-video', 'text-to-video'].map(status))).toEqual([200, 200])
    expect(await Promise.all(['sandbox/general', 'null%2Cnull', 'video'].map(status))).toEqual([404, 404, 404])
  })

  it.each(['nothing', 'nothing:download', 'zzx0:download', '7461736bx9:download'])(
    'GET /v1beta/files/%s gets 404',
    async (name) => {
      const response = await port.gateway.call(`/v1beta/files/${name}`)
      expect([response.status, (await response.json()).error.status]).toEqual([404, 'NOT_FOUND'])
    },
  )
})
