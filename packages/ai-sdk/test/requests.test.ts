/** How the AI SDK's options become requests of the gateway: each option, and both sides of each bound. */
import { describe, expect, test } from 'bun:test'
import type { ProviderV4, Experimental_VideoModelV4CallOptions as VideoOptions } from '@ai-sdk/provider'
import { APICallError, InvalidArgumentError } from '@ai-sdk/provider'
import manifest from '../package.json'
import { ERROR_STRUCTURE } from '../src/errors.ts'
import { createGatehouse, errorCodeOf, gatehouse, TaskFailedError, TaskTimeoutError } from '../src/gatehouse.ts'
import { rerankRequest } from '../src/reranking-model.ts'
import { connect, type GatehouseSettings, rulesOf, VERSION } from '../src/settings.ts'
import { threeDRequest } from '../src/three-d.ts'
import { videoRequest } from '../src/video-request.ts'

gatehouse satisfies ProviderV4
createGatehouse satisfies (settings?: GatehouseSettings) => ProviderV4

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const PNG_URI = 'data:image/png;base64,iVBORw0KGgo='
const NOTHING: VideoOptions = {
  prompt: undefined,
  n: 1,
  aspectRatio: undefined,
  resolution: undefined,
  duration: undefined,
  fps: undefined,
  seed: undefined,
  image: undefined,
  frameImages: undefined,
  inputReferences: undefined,
  generateAudio: undefined,
  providerOptions: {},
}
/** As it goes over the wire. */
const sent = (body: unknown) => JSON.parse(JSON.stringify(body))
function video(options: Partial<VideoOptions> & { webhookUrl?: string }) {
  const { body, warnings } = videoRequest({ modelId: 'm', options: { ...NOTHING, ...options } })
  return { body: sent(body), warnings }
}
const urlFile = (url: string, mediaType?: string) => ({
  type: 'url' as const,
  url,
  ...(mediaType ? { mediaType } : {}),
})
const file = (data: string | Uint8Array, mediaType = 'image/png') => ({ type: 'file' as const, data, mediaType })

describe('a video', () => {
  const CASES: [name: string, options: Partial<VideoOptions> & { webhookUrl?: string }, body: object][] = [
    ['nothing but the model', {}, {}],
    ['a prompt', { prompt: 'A kite' }, { prompt: 'A kite' }],
    ['a ratio', { aspectRatio: '9:16' }, { aspect_ratio: '9:16' }],
    ['the ratio of its input', { aspectRatio: 'adaptive' }, { aspect_ratio: 'adaptive' }],
    ['a resolution', { resolution: '1280x720' }, { size: '1280x720' }],
    ['a duration', { duration: 4.5 }, { duration: 4.5 }],
    ['the smallest seed', { seed: 0 }, { seed: 0 }],
    ['sound', { generateAudio: true }, { audio_enable: true }],
    ['no sound', { generateAudio: false }, { audio_enable: false }],
    ['one', { n: 1 }, {}],
    ['several', { n: 2 }, { n: 2 }],
    ['a webhook', { webhookUrl: 'https://a.example/hook' }, { callback_url: 'https://a.example/hook' }],
    ['an image by its address', { image: urlFile('https://a.example/i.png') }, { image: 'https://a.example/i.png' }],
    ['an image in bytes', { image: file(PNG) }, { image: PNG_URI }],
    ['an image in base64', { image: file('iVBORw0KGgo=') }, { image: PNG_URI }],
    [
      'the first frame and the last',
      {
        frameImages: [
          { image: file(PNG), frameType: 'last_frame' },
          { image: urlFile('https://a.example/1.png'), frameType: 'first_frame' },
        ],
      },
      { image: 'https://a.example/1.png', last_image: PNG_URI },
    ],
    [
      'a first frame before the image of the prompt',
      { image: file(PNG), frameImages: [{ image: urlFile('https://a.example/1.png'), frameType: 'first_frame' }] },
      { image: 'https://a.example/1.png' },
    ],
    [
      'an image beside a last frame',
      { image: file(PNG), frameImages: [{ image: urlFile('https://a.example/1.png'), frameType: 'last_frame' }] },
      { image: PNG_URI, last_image: 'https://a.example/1.png' },
    ],
    [
      'references in their order',
      { inputReferences: [file(PNG), urlFile('https://a.example/2')] },
      { images: [PNG_URI, 'https://a.example/2'] },
    ],
    [
      'a video among references, by its type',
      { inputReferences: [urlFile('https://a.example/2', 'video/mp4'), file(PNG)] },
      { images: [PNG_URI], video: 'https://a.example/2' },
    ],
    [
      'a video among references, by its extension',
      { inputReferences: [urlFile('https://a.example/2.MOV?key=1')] },
      { video: 'https://a.example/2.MOV?key=1' },
    ],
    [
      'an image whose address only ends like a video',
      { inputReferences: [urlFile('https://a.example/i.png?from=a.mp4')] },
      { images: ['https://a.example/i.png?from=a.mp4'] },
    ],
    ['a video in bytes', { inputReferences: [file('AAAA', 'video/webm')] }, { video: 'data:video/webm;base64,AAAA' }],
    [
      'fields of the gateway, in camel case or snake case',
      {
        providerOptions: {
          gatehouse: { negative_prompt: 'rain', callbackUrl: 'https://a.example', metadata: { fal: { loopIt: true } } },
        },
      },
      { negative_prompt: 'rain', callback_url: 'https://a.example', metadata: { fal: { loopIt: true } } },
    ],
    [
      'fields of the gateway before other options',
      { resolution: '1280x720', providerOptions: { gatehouse: { size: '720p', model: 'other' }, fal: { size: '1' } } },
      { size: '720p' },
    ],
  ]
  test.each(CASES)('has %s', (_, options, body) => {
    expect(video(options)).toEqual({ body: { ...body, model: 'm' }, warnings: [] })
  })

  test('warns of options that are left out', () => {
    const frames = [1, 2].map((at) => ({
      image: urlFile(`https://a.example/${at}`),
      frameType: 'last_frame' as const,
    }))
    const { body, warnings } = video({
      fps: 24,
      frameImages: frames,
      inputReferences: [urlFile('https://a.example/1.mp4'), urlFile('https://a.example/2.mp4')],
    })
    expect(body).toEqual({ model: 'm', last_image: 'https://a.example/1', video: 'https://a.example/1.mp4' })
    expect(warnings.map((one) => 'feature' in one && one.feature)).toEqual([
      'frameImages with last_frame',
      'videos among inputReferences',
      'fps',
    ])
  })

  test('does not warn of an fps in providerOptions.gatehouse', () => {
    expect(video({ fps: 24, providerOptions: { gatehouse: { fps: 24 } } })).toEqual({
      body: { model: 'm', fps: 24 },
      warnings: [],
    })
  })
})

describe('a 3D model', () => {
  test('encodes each option in its field', () => {
    const options = {
      prompt: 'A teapot',
      format: 'obj',
      texture: false,
      pbr: false,
      targetPolycount: 100,
      negativePrompt: 'lid',
      seed: 0,
      webhookUrl: 'https://a.example/hook',
      providerOptions: { gatehouse: { metadata: { meshy: { symmetryMode: 'on' } } }, other: { prompt: 'no' } },
    } as const
    expect(sent(threeDRequest('m', options))).toEqual({
      model: 'm',
      prompt: 'A teapot',
      format: 'obj',
      texture: false,
      pbr: false,
      target_polycount: 100,
      negative_prompt: 'lid',
      seed: 0,
      callback_url: 'https://a.example/hook',
      metadata: { meshy: { symmetryMode: 'on' } },
    })
  })

  test('accepts images in every form', () => {
    const images = ['https://a.example/i.png', new URL('https://a.example/j.png'), PNG, PNG.buffer, 'iVBORw0KGgo=']
    expect(sent(threeDRequest('m', { images })).images).toEqual([
      'https://a.example/i.png',
      'https://a.example/j.png',
      PNG_URI,
      PNG_URI,
      'iVBORw0KGgo=',
    ])
    expect(sent(threeDRequest('m', { image: PNG }))).toEqual({ model: 'm', image: PNG_URI })
  })
})

describe('fields that the shared models would leave out', () => {
  /** What was posted, and what was warned of. */
  async function posted(answer: object, call: (gatehouse: ReturnType<typeof createGatehouse>) => PromiseLike<object>) {
    let body: unknown
    const fakeFetch = async (_: unknown, init: RequestInit = {}) => {
      body = JSON.parse(String(init.body))
      return Response.json(answer)
    }
    const result = await call(createGatehouse({ baseURL: 'https://gateway.test', fetch: fakeFetch as typeof fetch }))
    return { body, warnings: 'warnings' in result ? result.warnings : undefined }
  }
  const image = { n: 1, prompt: 'A kite', size: undefined, files: undefined, mask: undefined }
  const ordered = { ...image, aspectRatio: '16:9' as const, seed: 0, providerOptions: {} }

  test('an image request has its ratio and seed, without a warning', async () => {
    const answer = { data: [{ b64_json: 'AAAA' }] }
    const plain = await posted(answer, (gatehouse) => gatehouse.image('m').doGenerate(ordered))
    expect(plain).toEqual({ body: { model: 'm', prompt: 'A kite', n: 1, aspect_ratio: '16:9', seed: 0 }, warnings: [] })
    const providerOptions = { gatehouse: { negativePrompt: 'rain', seed: 7 } }
    const own = await posted(answer, (gatehouse) => gatehouse.image('m').doGenerate({ ...ordered, providerOptions }))
    expect(own.body).toMatchObject({ negative_prompt: 'rain', seed: 7, aspect_ratio: '16:9' })
    const none = { ...ordered, aspectRatio: undefined, seed: undefined }
    const bare = await posted(answer, (gatehouse) => gatehouse.image('m').doGenerate(none))
    expect(bare.body).toEqual({ model: 'm', prompt: 'A kite', n: 1 })
  })

  test('a chat request has its top_k, without a warning', async () => {
    const answer = { choices: [{ message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }] }
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hello' }] }]
    const { body, warnings } = await posted(answer, (gatehouse) => gatehouse('m').doGenerate({ prompt, topK: 5 }))
    expect([sent(body).top_k, warnings]).toEqual([5, []])
    const providerOptions = { gatehouse: { top_k: 7, reasoningEffort: 'low' } }
    const own = await posted(answer, (gatehouse) => gatehouse('m').doGenerate({ prompt, topK: 5, providerOptions }))
    expect(own.body).toMatchObject({ top_k: 7, reasoning_effort: 'low' })
    const bare = await posted(answer, (gatehouse) => gatehouse('m').doGenerate({ prompt }))
    expect(sent(bare.body)).not.toHaveProperty('top_k')
  })
})

describe('rerank', () => {
  const values = [{ title: 'Snow', text: 'It melts.' }]

  test('sends texts unchanged', () => {
    const documents = { type: 'text' as const, values: ['a', 'b'] }
    const { body, warnings } = rerankRequest('m', { documents, query: 'q', topN: 1 })
    expect([sent(body), warnings]).toEqual([{ model: 'm', query: 'q', documents: ['a', 'b'], top_n: 1 }, []])
  })

  test('sends objects as JSON text, unless the caller names their fields', () => {
    const documents = { type: 'object' as const, values }
    const whole = rerankRequest('m', { documents, query: 'q' })
    expect(sent(whole.body)).toEqual({ model: 'm', query: 'q', documents: [JSON.stringify(values[0])] })
    expect(whole.warnings).toMatchObject([{ type: 'compatibility' }])
    const providerOptions = { gatehouse: { rankFields: ['title'] } }
    const named = rerankRequest('m', { documents, query: 'q', providerOptions })
    expect(sent(named.body)).toEqual({ model: 'm', query: 'q', documents: values, rank_fields: ['title'] })
    expect(named.warnings).toEqual([])
  })
})

describe('the base URL', () => {
  const urlOf = (baseURL?: string) => connect({ baseURL }).url('/rerank')

  test.each([
    ['https://a.example/v1', 'https://a.example/v1/rerank'],
    ['https://a.example/v1/', 'https://a.example/v1/rerank'],
    ['https://a.example', 'https://a.example/v1/rerank'],
    ['https://a.example/', 'https://a.example/v1/rerank'],
    ['http://[::1]:8787/models', 'http://[::1]:8787/models/rerank'],
  ])('%s', (given, expected) => {
    expect(urlOf(given)).toBe(expected)
  })

  test.each(['a.example', 'ftp://a.example/v1', '  '])('"%s" is invalid', (given) => {
    expect(() => urlOf(given)).toThrow(InvalidArgumentError)
  })

  test('comes from the environment like the key, else it is localhost', async () => {
    const { GATEHOUSE_BASE_URL: url, GATEHOUSE_API_KEY: key } = process.env
    const restore = (name: string, value: string | undefined) => {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    try {
      restore('GATEHOUSE_BASE_URL', undefined)
      restore('GATEHOUSE_API_KEY', undefined)
      const connection = connect({})
      expect(connection.url('/rerank')).toBe('http://127.0.0.1:8787/v1/rerank')
      expect(await connection.headers()).toEqual({})
      process.env.GATEHOUSE_BASE_URL = 'https://b.example/v1'
      process.env.GATEHOUSE_API_KEY = 'from-environment'
      expect(connection.url('/rerank')).toBe('https://b.example/v1/rerank')
      expect(await connection.headers()).toEqual({ authorization: 'Bearer from-environment' })
      expect(urlOf('https://a.example/v1')).toBe('https://a.example/v1/rerank')
      const settings = { apiKey: async () => 'fresh', headers: { 'X-Team': 'a' } }
      expect(await connect(settings).headers()).toEqual({ authorization: 'Bearer fresh', 'x-team': 'a' })
    } finally {
      restore('GATEHOUSE_BASE_URL', url)
      restore('GATEHOUSE_API_KEY', key)
    }
  })
})

describe('task settings', () => {
  test('of a model override those of the provider, unless undefined', () => {
    const rules = rulesOf({ pollIntervalMs: 5, cancelOnAbort: true }, { pollIntervalMs: 7, cancelOnAbort: undefined })
    expect(rules).toMatchObject({ pollIntervalMs: 7, cancelOnAbort: true, statusWaitSeconds: 0 })
  })

  test.each([
    [{ pollIntervalMs: 0 }, true],
    [{ pollIntervalMs: -1 }, false],
    [{ pollIntervalMs: Number.NaN }, false],
    [{ timeoutMs: 1 }, true],
    [{ timeoutMs: 0 }, false],
    [{ statusWaitSeconds: 0 }, true],
    [{ statusWaitSeconds: 60 }, true],
    [{ statusWaitSeconds: 60.5 }, false],
    [{ statusWaitSeconds: -1 }, false],
  ])('%j', (settings, isValid) => {
    const make = () => createGatehouse({ tasks: settings })
    if (isValid) expect(make).not.toThrow()
    else expect(make).toThrow(InvalidArgumentError)
  })
})

describe('errors', () => {
  const failed = new TaskFailedError({ taskId: 'task_1', failCode: 'timeout', failReason: 'Too slow.' })
  const refused = (data: unknown) =>
    new APICallError({ message: 'm', url: 'u', requestBodyValues: {}, statusCode: 404, data })

  test('are distinguished by isInstance', () => {
    const late = new TaskTimeoutError({ taskId: 'task_1', timeoutMs: 5 })
    expect([failed.message, failed.failReason, late.taskId]).toEqual(['timeout: Too slow.', 'Too slow.', 'task_1'])
    expect([failed, late, new Error('x')].map((one) => TaskFailedError.isInstance(one))).toEqual([true, false, false])
    expect([failed, late, undefined].map((one) => TaskTimeoutError.isInstance(one))).toEqual([false, true, false])
  })

  test('have their code found at every place', () => {
    const named = refused({ error: { message: 'm', code: 'model_not_found' } })
    expect(errorCodeOf(failed)).toBe('timeout')
    expect(errorCodeOf(named)).toBe('model_not_found')
    expect(errorCodeOf(Object.assign(new Error('tries'), { lastError: named }))).toBe('model_not_found')
    expect([refused(undefined), refused({ error: 'x' }), new Error('x'), 'x'].map(errorCodeOf)).toEqual(
      Array(4).fill(undefined),
    )
  })

  test.each([
    [503, undefined, true],
    [429, undefined, true],
    [409, undefined, true],
    [408, undefined, true],
    [500, undefined, true],
    [499, undefined, false],
    [400, undefined, false],
    [503, 'false', false],
    [400, 'true', true],
    [503, 'perhaps', true],
  ])('status %p, x-should-retry %p', (status, retryHeader, isRetried) => {
    const headers: Record<string, string> = retryHeader === undefined ? {} : { 'x-should-retry': retryHeader }
    expect(ERROR_STRUCTURE.isRetryable(new Response(null, { status, headers }))).toBe(isRetried)
  })
})

test('the version is that of the package', () => {
  expect(manifest.version).toBe(VERSION)
})
