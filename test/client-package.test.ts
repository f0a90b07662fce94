/** The client package, as programs use it that know the gateway's address and nothing else. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { JSONValue } from '@ai-sdk/provider'
import {
  APICallError,
  createProviderRegistry,
  embedMany,
  generateImage,
  generateText,
  experimental_generateVideo as generateVideo,
  experimental_getVideoStatus as getVideoStatus,
  jsonSchema,
  Output,
  RetryError,
  rerank,
  experimental_startVideo as startVideo,
  stepCountIs,
  streamText,
  tool,
} from 'ai'
import validator from 'gltf-validator'
import {
  createGatehouse,
  errorCodeOf,
  type GatehouseSettings,
  generateThreeD,
  TaskFailedError,
} from '../packages/ai-sdk/src/gatehouse.ts'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import { openPort, type Port, watchUnhandled } from './kit/served.ts'

let port: Port
/** Somebody who is told when a task has ended, and what was heard. */
let receiver: ReturnType<typeof Bun.serve>
const heard = Promise.withResolvers<{ headers: Record<string, string>; body: JSONValue }>()
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  unhandled = watchUnhandled()
  receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      heard.resolve({ headers: Object.fromEntries(request.headers), body: await request.json() })
      return new Response()
    },
  })
  port = await openPort({
    tasks: { ...DEFAULT_TASKS, poll_seconds: 0.2, slow_poll_seconds: 1, callback_origins: [receiver.url.origin] },
  })
})
beforeEach(() => {
  port.requests.length = 0
})
afterAll(async () => {
  await port.close()
  await receiver.stop(true)
  expect(unhandled.stop()).toEqual([])
})

const FAST = { pollIntervalMs: 20 }
const provider = (settings: GatehouseSettings = {}) =>
  createGatehouse({ baseURL: port.url, apiKey: port.token, tasks: FAST, ...settings })
const VIDEO = 'sandbox/text-to-video'
const KITE = 'A red kite over the sea.\n@sandbox quick=1'

const thrownBy = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )
const isMp4 = (bytes: Uint8Array | undefined) => Buffer.from(bytes?.slice(4, 8) ?? []).toString() === 'ftyp'
/** Every task of videos that the gateway knows. */
async function tasks(): Promise<{ task_id: string; status: string; fail_code: string }[]> {
  const answer = await port.gateway.call('/v1/video/generations?limit=100')
  return (await answer.json()).data.tasks
}

/** A task once it has ended. */
async function ended(task_id: string | undefined): Promise<{ status: string; fail_code: string }> {
  for (;;) {
    const answer = await port.gateway.call(`/v1/video/generations/${task_id}?wait=20`)
    const { data } = await answer.json()
    if (data.status === 'SUCCESS' || data.status === 'FAILURE') return data
  }
}

/** The first order reaches the gateway, and its answer is lost on the way back. */
function losingFirst(): typeof fetch {
  let is_lost = false
  const losing = async (...[input, init]: Parameters<typeof fetch>) => {
    const response = await fetch(input, init)
    if (is_lost || init?.method !== 'POST') return response
    is_lost = true
    await response.body?.cancel()
    throw new TypeError('fetch failed', { cause: new Error('socket hang up') })
  }
  return losing as typeof fetch
}

describe('a video', () => {
  test('is ordered, awaited and returned as an MP4', async () => {
    const { video, responses, providerMetadata } = await generateVideo({
      model: provider().video(VIDEO),
      prompt: KITE,
      aspectRatio: '9:16',
      resolution: '720x1280',
      duration: 4,
      seed: 7,
      generateAudio: false,
    })
    expect(video.mediaType).toBe('video/mp4')
    expect(isMp4(video.uint8Array)).toBe(true)
    expect(responses[0]).toMatchObject({ modelId: VIDEO, headers: { 'x-request-id': expect.any(String) } })
    expect(providerMetadata.gatehouse).toMatchObject({ status: 'SUCCESS', progress: '100%' })
    const [order] = port.requests
    expect(order?.headers.get('idempotency-key')).toMatch(/^gatehouse_/)
    expect(order?.headers.get('user-agent')).toMatch(/^ai\/\S+ .*gatehouse-ai-sdk\//)
  })

  test('is polled by the AI SDK itself with a polling interval', async () => {
    const poll = { intervalMs: 20 }
    const { videos } = await generateVideo({ model: provider().video(VIDEO), prompt: KITE, n: 2, seed: 1, poll })
    expect(videos.map(({ uint8Array }) => isMp4(uint8Array))).toEqual([true, true])
    const keys = port.requests
      .filter(({ method }) => method === 'POST')
      .map(({ headers }) => headers.get('idempotency-key'))
    expect(new Set(keys).size).toBe(2)
  })

  test('is started in one process and fetched in another', async () => {
    const started = await startVideo({ model: provider().video(VIDEO), prompt: KITE })
    const operation = JSON.parse(JSON.stringify(started.operation))
    expect(started.providerMetadata?.gatehouse).toEqual({ taskId: operation.task_id })
    const elsewhere = provider({ tasks: { statusWaitSeconds: 20, videoData: 'url' } }).video(VIDEO)
    let told = await getVideoStatus(elsewhere, { operation })
    while (told.status === 'pending') told = await getVideoStatus(elsewhere, { operation })
    if (told.status !== 'completed') throw new Error(told.error)
    const [video] = told.videos
    if (video?.type !== 'url') throw new Error('no link')
    expect(video.mediaType).toBe('video/mp4')
    expect(isMp4(await (await fetch(video.url)).bytes())).toBe(true)
  })

  test('is not polled before its webhook arrives', async () => {
    const webhook = async () => ({ url: `${receiver.url.origin}/hook`, received: heard.promise })
    const { video } = await generateVideo({ model: provider().video(VIDEO), prompt: KITE, webhook })
    expect(isMp4(video.uint8Array)).toBe(true)
    expect((await heard.promise).body).toMatchObject({ type: 'task.succeeded' })
    const asked = port.requests.filter(({ path }) => /\/task_\w+$/.test(path))
    expect(asked).toHaveLength(1)
  })

  test('fails with its fail_code and fail_reason', async () => {
    const prompt = 'A kite.\n@sandbox fail=content_policy_violation'
    const error = await thrownBy(generateVideo({ model: provider().video(VIDEO), prompt }))
    if (!TaskFailedError.isInstance(error)) throw error
    expect(error.failCode).toBe('content_policy_violation')
    expect(error.failReason).not.toBe('')
    expect(error.taskId).toStartWith('task_')
    const polled = await thrownBy(generateVideo({ model: provider().video(VIDEO), prompt, poll: { intervalMs: 20 } }))
    expect(polled).toMatchObject({ message: error.message })
    const status = await provider()
      .video(VIDEO)
      .doStatus({ operation: { task_id: error.taskId } })
    expect(status).toMatchObject({ status: 'error', error: error.message })
  })

  test('is one task when the response to its order is lost', async () => {
    const before = (await tasks()).length
    const model = provider({ fetch: losingFirst() }).video(VIDEO)
    const { video } = await generateVideo({ model, prompt: KITE })
    expect(isMp4(video.uint8Array)).toBe(true)
    expect((await tasks()).length).toBe(before + 1)
    expect(port.requests.filter(({ method }) => method === 'POST')).toHaveLength(2)
  })

  describe('an aborted video', () => {
    async function abortOnce(settings: GatehouseSettings) {
      const controller = new AbortController()
      const watching = async (...[input, init]: Parameters<typeof fetch>) => {
        const answer = fetch(input, init)
        if (init?.method === 'GET') controller.abort()
        return answer
      }
      const model = provider({ ...settings, fetch: watching as typeof fetch }).video(VIDEO)
      const prompt = 'A kite.\n@sandbox hang=1'
      const error = await thrownBy(generateVideo({ model, prompt, abortSignal: controller.signal }))
      expect(error).toMatchObject({ name: 'AbortError' })
      return port.requests.filter(({ path }) => path.endsWith('/cancel')).length
    }
    const hanging = async () => (await tasks()).filter(({ status }) => status !== 'SUCCESS' && status !== 'FAILURE')

    test('ends for its caller and continues at the gateway', async () => {
      expect(await abortOnce({})).toBe(0)
      const [left, ...others] = await hanging()
      expect([left?.fail_code, others]).toEqual(['', []])
      await port.gateway.call(`/v1/video/generations/${left?.task_id}/cancel`, { method: 'POST' })
      await ended(left?.task_id)
    })

    test('is canceled at the gateway when requested', async () => {
      expect(await abortOnce({ tasks: { cancelOnAbort: true } })).toBe(1)
      const { path } = port.requests.find((one) => one.path.endsWith('/cancel')) ?? { path: '' }
      expect(await ended(path.split('/').at(-2))).toMatchObject({ status: 'FAILURE', fail_code: 'canceled' })
    })
  })
})

describe('an error', () => {
  test('has status, message and code', async () => {
    const error = await thrownBy(generateVideo({ model: provider().video('nobody/none'), prompt: KITE }))
    if (!APICallError.isInstance(error)) throw error
    expect([error.statusCode, errorCodeOf(error), error.isRetryable]).toEqual([404, 'model_not_found', false])
    expect(error.message).toContain('nobody/none')
    expect(port.requests).toHaveLength(1)
  })

  const ask: Record<string, (gatehouse: ReturnType<typeof provider>) => PromiseLike<unknown>> = {
    chat: (gatehouse) => generateText({ model: gatehouse('nobody/none'), prompt: 'Hello' }),
    embeddings: (gatehouse) => embedMany({ model: gatehouse.embedding('nobody/none'), values: ['a'] }),
    images: (gatehouse) => generateImage({ model: gatehouse.image('nobody/none'), prompt: 'A kite' }),
    rerank: (gatehouse) => rerank({ model: gatehouse.reranking('nobody/none'), query: 'q', documents: ['a'] }),
    '3D': (gatehouse) => generateThreeD({ model: gatehouse.threeD('nobody/none'), prompt: 'A teapot' }),
  }
  test.each(Object.entries(ask))('of %s has the same code', async (_, call) => {
    const error = await thrownBy(call(provider()))
    expect(APICallError.isInstance(error) && error.statusCode).toBe(404)
    expect(errorCodeOf(error)).toBe('model_not_found')
    expect(errorCodeOf(await thrownBy(call(provider({ apiKey: 'wrong' }))))).toBe('invalid_api_key')
  })

  test('names the field and its allowed values', async () => {
    const error = await thrownBy(generateVideo({ model: provider().video(VIDEO), prompt: KITE, duration: 5 }))
    expect(error).toMatchObject({ statusCode: 400, message: expect.stringContaining('one of 4, 8') })
    expect(errorCodeOf(error)).toBe('invalid_value')
  })

  test('that is transient is retried, and has the code of the last attempt', async () => {
    const prompt = 'Hello\n@sandbox status=429 retry_after=0'
    const error = await thrownBy(generateText({ model: provider()('sandbox/general'), prompt, maxRetries: 1 }))
    expect(RetryError.isInstance(error)).toBe(true)
    expect(errorCodeOf(error)).toBe('rate_limit_exceeded')
    expect(port.requests).toHaveLength(2)
  })
})

describe('chat', () => {
  const model = () => provider().chat('sandbox/general')

  test('returns whole and streamed responses with token counts', async () => {
    const whole = await generateText({ model: model(), prompt: 'What is Gatehouse?', topK: 5 })
    expect(whole.text).toContain('Gatehouse')
    expect(whole.usage.outputTokens).toBeGreaterThan(0)
    expect(whole.warnings ?? []).toEqual([])
    const stream = streamText({ model: model(), prompt: 'What is Gatehouse?' })
    expect(await stream.text).toBe(whole.text)
    expect((await stream.usage).outputTokens).toBe(whole.usage.outputTokens)
  })

  test('returns reasoning when requested', async () => {
    const thinking = provider().languageModel('sandbox/vision')
    const { reasoningText, text } = await generateText({
      model: thinking,
      prompt: 'Why?',
      providerOptions: { gatehouse: { thinking_enabled: true } },
    })
    expect([reasoningText !== undefined && reasoningText !== '', text !== '']).toEqual([true, true])
  })

  test('follows a schema and calls tools', async () => {
    const city = jsonSchema<{ city: string }>({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    })
    const { output } = await generateText({ model: model(), prompt: 'A city', output: Output.object({ schema: city }) })
    expect(Object.keys(output)).toEqual(['city'])
    const asked: string[] = []
    const weather = tool({
      description: 'The weather in a city',
      inputSchema: city,
      execute: async (input) => {
        asked.push(input.city)
        return 'Sunny'
      },
    })
    const { text } = await generateText({
      model: model(),
      prompt: 'What is the weather in Oslo? Use get_weather.',
      tools: { get_weather: weather },
      stopWhen: stepCountIs(3),
    })
    expect([asked.length > 0, text !== '']).toEqual([true, true])
  })
})

test('embeddings have the requested dimensions', async () => {
  const { embeddings, usage } = await embedMany({
    model: provider().embeddingModel('sandbox/embedding'),
    values: ['Snow melts', 'Ships sail'],
    providerOptions: { gatehouse: { dimensions: 64 } },
  })
  expect(embeddings.map(({ length }) => length)).toEqual([64, 64])
  expect(usage.tokens).toBeGreaterThan(0)
})

describe('rerank', () => {
  const model = () => provider().rerankingModel('sandbox/rerank')
  const query = 'When does the snow melt?'

  test('orders texts', async () => {
    const documents = ['Boats leave at noon.', 'The snow melts in April.', 'Snow fell.']
    const { ranking, response } = await rerank({ model: model(), query, documents, topN: 2 })
    expect(ranking.map(({ originalIndex }) => originalIndex)).toEqual([1, 2])
    expect(ranking[0]?.score).toBeGreaterThan(ranking[1]?.score ?? 1)
    expect(response).toMatchObject({ modelId: 'sandbox/rerank', id: expect.any(String) })
  })

  test('reads whole objects or the named fields', async () => {
    const documents = [
      { title: 'Boats', note: 'snow melts' },
      { title: 'The snow melts', note: 'boats' },
      { title: 'Nothing', note: 'nothing' },
    ]
    const whole = await rerank({ model: model(), query, documents })
    expect(whole.ranking.at(-1)?.originalIndex).toBe(2)
    const providerOptions = { gatehouse: { rankFields: ['title'] } }
    const named = await rerank({ model: model(), query, documents, topN: 1, providerOptions })
    expect(named.ranking[0]?.originalIndex).toBe(1)
  })
})

test('an image uses its seed without a warning', async () => {
  const imageOf = (seed: number) =>
    generateImage({ model: provider().image('sandbox/image'), prompt: 'A kite', size: '256x256', seed })
  const [one, same, other] = [await imageOf(1), await imageOf(1), await imageOf(2)]
  expect([one.image.mediaType, one.warnings]).toEqual(['image/png', []])
  expect(same.image.base64).toBe(one.image.base64)
  expect(other.image.base64).not.toBe(one.image.base64)
})

test('a 3D model is a GLB with a preview image', async () => {
  const { file, files, taskId } = await generateThreeD({
    model: provider().threeD('sandbox/text-to-3d'),
    prompt: 'A teapot\n@sandbox quick=1',
    format: 'glb',
    targetPolycount: 100,
  })
  expect(files.map(({ format, mediaType }) => [format, mediaType])).toEqual([
    ['glb', 'model/gltf-binary'],
    ['png', 'image/png'],
  ])
  const { data, mediaType, filename } = await file.download()
  expect([mediaType, filename?.endsWith('.glb')]).toEqual(['model/gltf-binary', true])
  expect((await validator.validateBytes(data)).issues.numErrors).toBe(0)
  const status = await provider()
    .threeD('sandbox/text-to-3d')
    .status({ operation: { task_id: taskId } })
  expect(status).toMatchObject({ status: 'completed', files: [{ format: 'glb' }, { format: 'png' }] })
})

test('a registry of the AI SDK finds every family', async () => {
  const registry = createProviderRegistry({ gatehouse: provider() })
  const { video } = await generateVideo({ model: registry.videoModel(`gatehouse:${VIDEO}`), prompt: KITE })
  expect(isMp4(video.uint8Array)).toBe(true)
  expect(registry.languageModel('gatehouse:sandbox/general').modelId).toBe('sandbox/general')
  expect(registry.embeddingModel('gatehouse:sandbox/embedding').provider).toBe('gatehouse.embedding')
  expect(registry.imageModel('gatehouse:sandbox/image').provider).toBe('gatehouse.image')
  expect(registry.rerankingModel('gatehouse:sandbox/rerank').provider).toBe('gatehouse.reranking')
})
