/** Waiting for a task: what ends it, what does not, and what is sent on the way, with a gateway that responds by a script. */
import { describe, expect, spyOn, test } from 'bun:test'
import { APICallError } from '@ai-sdk/provider'
import {
  createGatehouse,
  generateThreeD,
  TaskFailedError,
  type TaskSettings,
  TaskTimeoutError,
} from '../src/gatehouse.ts'

type SentRequest = { method: string; path: string; headers: Headers; body: unknown }
type Responder = (request: SentRequest, signal: AbortSignal | null | undefined) => Response | Promise<Response>

const BASE = 'https://gateway.test/v1'
const created = () => Response.json({ code: 'success', data: { task_id: 'task_1' }, message: '', fail_code: '' })
const taskResponse = (status: string, more: object = {}) =>
  Response.json({ code: 'success', message: '', data: { task_id: 'task_1', status, progress: '30%', ...more } })
const refused = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { message: `It is ${code}.`, type: 't', param: null, code } }, { status, headers })
const done = () => taskResponse('SUCCESS', { outputs: ['https://cdn.test/a/kite.mp4?key=1'] })
const lost = () => {
  throw new TypeError('fetch failed', { cause: new Error('socket hang up') })
}
/** Holds the response back until the client disconnects. */
const neverResolves = (signal: AbortSignal | null | undefined) =>
  new Promise<Response>((_, reject) =>
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  )

/** Each request gets the next response of the script; after its end the last one again. */
function withResponses(script: Responder[], tasks: TaskSettings = {}) {
  const requests: SentRequest[] = []
  const fakeFetch = async (input: string | URL | Request, init: RequestInit = {}) => {
    const url = new URL(String(input))
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    const one = {
      method: init.method ?? 'GET',
      path: url.pathname + url.search,
      headers: new Headers(init.headers),
      body,
    }
    requests.push(one)
    const respond = script[Math.min(requests.length, script.length) - 1]
    if (!respond) throw new Error('the script is empty')
    return respond(one, init.signal)
  }
  const settings = { baseURL: BASE, apiKey: 'k', tasks: { pollIntervalMs: 0, ...tasks } }
  const gatehouse = createGatehouse({ ...settings, fetch: fakeFetch as typeof fetch })
  return { requests, gatehouse, video: gatehouse.video('m'), threeD: gatehouse.threeD('m') }
}

const ORDER = {
  prompt: 'A kite',
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
const thrownBy = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )

describe('doGenerate of a video', () => {
  test('polls until the task ends, and the gateway holds each response back', async () => {
    const { requests, video } = withResponses([
      created,
      () => taskResponse('NOT_START'),
      () => taskResponse('IN_PROGRESS'),
      done,
    ])
    const { videos, providerMetadata, response, warnings } = await video.doGenerate({ ...ORDER })
    expect(videos).toEqual([{ type: 'url', url: 'https://cdn.test/a/kite.mp4?key=1', mediaType: 'video/mp4' }])
    expect(providerMetadata?.gatehouse).toMatchObject({ taskId: 'task_1', status: 'SUCCESS' })
    expect([response.modelId, warnings]).toEqual(['m', []])
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/video/generations',
      ...Array(3).fill('GET /v1/video/generations/task_1?wait=25'),
    ])
    expect(requests[0]?.body).toEqual({ model: 'm', prompt: 'A kite' })
    for (const { headers } of requests) {
      expect(headers.get('authorization')).toBe('Bearer k')
      expect(headers.get('user-agent')).toContain('gatehouse-ai-sdk/0.1.0')
    }
    expect(requests.slice(1).map(({ headers }) => headers.get('idempotency-key'))).toEqual([null, null, null])
  })

  test.each([
    ['https://cdn.test/a/kite.webm', 'video/webm'],
    ['https://cdn.test/a/kite', 'video/mp4'],
  ])('%s has the media type %s', async (url, mediaType) => {
    const { video } = withResponses([created, () => taskResponse('SUCCESS', { outputs: [url] })])
    expect((await video.doGenerate({ ...ORDER })).videos).toEqual([{ type: 'url', url, mediaType }])
  })

  test('requests the description of a gateway link from the gateway', async () => {
    const url = `${BASE}/videos/task_1/content?signature=s`
    const { requests, video } = withResponses([
      created,
      () => taskResponse('SUCCESS', { outputs: [url] }),
      () => new Response(null, { headers: { 'content-type': 'video/webm; codecs=vp9' } }),
    ])
    expect((await video.doGenerate({ ...ORDER })).videos).toEqual([{ type: 'url', url, mediaType: 'video/webm' }])
    expect(requests.at(-1)).toMatchObject({ method: 'HEAD', path: '/v1/videos/task_1/content?signature=s' })
    expect(requests.at(-1)?.headers.get('authorization')).toBeNull()
  })

  test('returns links or bytes as the caller configured', async () => {
    const outputs = ['https://cdn.test/kite.mp4']
    const bytes = () => new Response(new Uint8Array([1, 2]), { headers: { 'content-type': 'video/webm' } })
    const { requests, video } = withResponses([created, () => taskResponse('SUCCESS', { outputs }), bytes], {
      videoData: 'binary',
    })
    const { videos } = await video.doGenerate({ ...ORDER })
    expect(videos).toEqual([{ type: 'binary', data: new Uint8Array([1, 2]), mediaType: 'video/webm' }])
    expect(requests.at(-1)?.headers.get('authorization')).toBeNull()
  })

  test('continues after polls that fail for a while', async () => {
    const { requests, video } = withResponses([
      created,
      () => refused(503, 'server_is_overloaded'),
      lost,
      () => refused(500, 'x'),
      done,
    ])
    expect((await video.doGenerate({ ...ORDER })).videos).toHaveLength(1)
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET', 'GET'])
  })

  test('times out a poll without a response, and repeats it', async () => {
    const limits: number[] = []
    const timeout = spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
      limits.push(milliseconds)
      return limits.length === 1
        ? AbortSignal.abort(new DOMException('late', 'TimeoutError'))
        : new AbortController().signal
    })
    try {
      const { requests, video } = withResponses([created, (_, signal) => Promise.reject(signal?.reason), done])
      expect((await video.doGenerate({ ...ORDER })).videos).toHaveLength(1)
      expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET'])
      expect(limits).toEqual([55_000, 55_000])
    } finally {
      timeout.mockRestore()
    }
  })

  test('throws when polls keep failing, and orders nothing new when the call is repeated', async () => {
    const { requests, video } = withResponses([created, ...Array(7).fill(() => refused(503, 'x')), created, done])
    const order = { ...ORDER }
    expect(await thrownBy(video.doGenerate(order))).toMatchObject({ statusCode: 503, isRetryable: true })
    expect(requests).toHaveLength(8)
    await video.doGenerate(order)
    const keys = requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers.get('idempotency-key'))
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^gatehouse_[\da-f-]{36}$/)
  })

  test('throws at once when a poll is refused', async () => {
    const { requests, video } = withResponses([created, () => refused(404, 'task_not_exist')])
    expect(await thrownBy(video.doGenerate({ ...ORDER }))).toMatchObject({
      message: 'It is task_not_exist.',
      statusCode: 404,
      isRetryable: false,
    })
    expect(requests).toHaveLength(2)
  })

  test.each([
    [{ fail_code: 'content_policy_violation', fail_reason: 'No kites.' }, 'content_policy_violation: No kites.'],
    [{ fail_code: '', fail_reason: '' }, 'generation_failed'],
  ])('throws a TaskFailedError for %j', async (fields, message) => {
    const { video } = withResponses([created, () => taskResponse('FAILURE', fields)])
    const error = await thrownBy(video.doGenerate({ ...ORDER }))
    expect(TaskFailedError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ message, taskId: 'task_1', failReason: fields.fail_reason })
  })

  test('throws for a response that is not a task', async () => {
    for (const body of ['<html>', '{}', '{"data":{"task_id":""}}']) {
      const { video } = withResponses([() => new Response(body)])
      expect(APICallError.isInstance(await thrownBy(video.doGenerate({ ...ORDER })))).toBe(true)
    }
  })

  test('throws after the timeout, and leaves the task running', async () => {
    const { requests, video } = withResponses([created, () => taskResponse('QUEUED')], {
      timeoutMs: 30,
      pollIntervalMs: 5,
    })
    const error = await thrownBy(video.doGenerate({ ...ORDER }))
    expect(TaskTimeoutError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ taskId: 'task_1' })
    const waits = requests.slice(1).map(({ path }) => Number(new URL(path, BASE).searchParams.get('wait')))
    expect(waits.every((seconds) => seconds > 0 && seconds <= 0.03)).toBe(true)
    expect(requests.filter(({ path }) => path.endsWith('/cancel'))).toEqual([])
  })
})

describe('the idempotency key', () => {
  test('is the caller’s own, in any case', async () => {
    const { requests, video } = withResponses([created, done])
    await video.doGenerate({ ...ORDER, headers: { 'Idempotency-Key': 'mine' } })
    expect(requests.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', null])
  })

  test('differs for another call with equal options', async () => {
    const { requests, video, threeD } = withResponses([created])
    await video.doStart({ ...ORDER })
    await video.doStart({ ...ORDER })
    await threeD.start({ prompt: 'A kite' })
    expect(new Set(requests.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(3)
  })
})

describe('an aborted call', () => {
  /** Aborts once the first poll has been sent. */
  function aborting(tasks: TaskSettings, cancel: Responder = () => taskResponse('FAILURE', { fail_code: 'canceled' })) {
    const controller = new AbortController()
    const question: Responder = (_, signal) => {
      const answer = neverResolves(signal)
      controller.abort()
      return answer
    }
    return { ...withResponses([created, question, cancel], tasks), abortSignal: controller.signal }
  }

  test('throws at once, and its task continues', async () => {
    const { requests, video, abortSignal } = aborting({})
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal }))).toMatchObject({ name: 'AbortError' })
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  test('cancels its task with cancelOnAbort, with the caller’s headers', async () => {
    const { requests, video, abortSignal } = aborting({ cancelOnAbort: true })
    const call = video.doGenerate({ ...ORDER, abortSignal, headers: { 'X-Team': 'a' } })
    expect(await thrownBy(call)).toMatchObject({ name: 'AbortError' })
    expect(requests.at(-1)).toMatchObject({ method: 'POST', path: '/v1/video/generations/task_1/cancel' })
    expect(requests.at(-1)?.headers.get('x-team')).toBe('a')
  })

  test('throws the abort even when canceling fails', async () => {
    const { requests, video, abortSignal } = aborting({ cancelOnAbort: true }, () => refused(500, 'internal_error'))
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal }))).toMatchObject({ name: 'AbortError' })
    expect(requests).toHaveLength(3)
  })

  test('orders nothing when aborted before', async () => {
    const { video, threeD } = withResponses([
      (_, signal) => (signal?.aborted ? Promise.reject(signal.reason) : created()),
    ])
    const abortSignal = AbortSignal.abort()
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal }))).toMatchObject({ name: 'AbortError' })
    expect(await thrownBy(threeD.generate({ prompt: 'x', abortSignal }))).toMatchObject({ name: 'AbortError' })
  })

  test('throws at once between two polls', async () => {
    const controller = new AbortController()
    const question: Responder = () => {
      queueMicrotask(() => setTimeout(() => controller.abort(), 1))
      return taskResponse('QUEUED')
    }
    const { requests, video } = withResponses([created, question], { pollIntervalMs: 60_000 })
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal: controller.signal }))).toMatchObject({
      name: 'AbortError',
    })
    expect(requests).toHaveLength(2)
  })
})

describe('doStatus', () => {
  const operation = { task_id: 'task_1' }

  test.each([
    [() => taskResponse('NOT_START'), { status: 'pending' }],
    [() => taskResponse('IN_PROGRESS'), { status: 'pending', providerMetadata: { gatehouse: { progress: '30%' } } }],
    [done, { status: 'completed', warnings: [], videos: [{ type: 'url' }] }],
    [
      () => taskResponse('FAILURE', { fail_code: 'timeout', fail_reason: 'Too slow.' }),
      {
        status: 'error',
        error: 'timeout: Too slow.',
        providerMetadata: { gatehouse: { taskId: 'task_1', failCode: 'timeout', failReason: 'Too slow.' } },
      },
    ],
  ])('%# returns the state', async (respond, expected) => {
    const { requests, video } = withResponses([respond])
    expect(await video.doStatus({ operation })).toMatchObject(expected as object)
    expect(requests[0]?.path).toBe('/v1/video/generations/task_1')
  })

  test('waits as long as the caller configured, and accepts a bare id', async () => {
    const { requests, video, threeD } = withResponses([() => taskResponse('QUEUED')], { statusWaitSeconds: 7.5 })
    await video.doStatus({ operation: 'task/1' })
    await threeD.status({ operation: 'task_1' })
    expect(requests.map(({ path }) => path)).toEqual([
      '/v1/video/generations/task%2F1?wait=7.5',
      '/v1/3d/generations/task_1?wait=7.5',
    ])
  })

  test.each([[null], [''], [7], [{}], [{ task_id: '' }]])('throws for %j, which is no operation', async (nothing) => {
    const { requests, video } = withResponses([done])
    expect(await thrownBy(video.doStatus({ operation: nothing }))).toBeInstanceOf(TypeError)
    expect(requests).toEqual([])
  })
})

describe('generate of a 3D model', () => {
  const outputs = [`${BASE}/3d/generations/task_1/content?index=0`, 'https://cdn.test/teapot.png']
  const described = () =>
    new Response(null, {
      headers: { 'content-type': 'model/gltf-binary', 'content-disposition': 'attachment; filename="task_1.glb"' },
    })

  test('repeats an order without a response with its key, and describes its files', async () => {
    const { requests, threeD } = withResponses([lost, created, () => taskResponse('SUCCESS', { outputs }), described])
    const { taskId, file, files } = await generateThreeD({ model: threeD, prompt: 'A teapot', format: 'glb' })
    expect(taskId).toBe('task_1')
    expect(files.map(({ format, mediaType, filename }) => [format, mediaType, filename])).toEqual([
      ['glb', 'model/gltf-binary', 'task_1.glb'],
      ['png', 'image/png', 'teapot.png'],
    ])
    expect(file).toBe(files[0] as typeof file)
    const posts = requests.filter(({ method }) => method === 'POST')
    expect(posts.map(({ path }) => path)).toEqual(Array(2).fill('/v1/3d/generations'))
    expect(posts[0]?.headers.get('idempotency-key')).toBe(posts[1]?.headers.get('idempotency-key') ?? '')
  })

  test('throws the status of a refused download', async () => {
    const { threeD } = withResponses([
      created,
      () => taskResponse('SUCCESS', { outputs }),
      described,
      () => refused(403, 'link_expired'),
    ])
    const { file } = await threeD.generate({ prompt: 'A teapot' })
    expect(await thrownBy(file.download())).toMatchObject({ statusCode: 403 })
  })

  test('does not follow a link into a private network other than the gateway’s', async () => {
    const { requests, threeD } = withResponses([
      created,
      () => taskResponse('SUCCESS', { outputs: ['http://10.0.0.5/teapot.glb'] }),
    ])
    const { file } = await threeD.generate({ prompt: 'A teapot' })
    expect(await thrownBy(file.download())).toMatchObject({ name: 'AI_DownloadError' })
    expect(requests).toHaveLength(2)
  })

  test('does not repeat a refused order', async () => {
    for (const respond of [
      () => refused(400, 'invalid_value'),
      () => refused(503, 'x', { 'x-should-retry': 'false' }),
    ]) {
      const { requests, threeD } = withResponses([respond])
      expect(APICallError.isInstance(await thrownBy(threeD.generate({ prompt: 'x' })))).toBe(true)
      expect(requests).toHaveLength(1)
    }
  })

  test('sends a failing order maxRetries more times', async () => {
    const { requests, threeD } = withResponses([() => refused(503, 'server_is_overloaded')])
    expect(await thrownBy(threeD.generate({ prompt: 'x', maxRetries: 1 }))).toMatchObject({ statusCode: 503 })
    expect(await thrownBy(threeD.generate({ prompt: 'x', maxRetries: 0 }))).toMatchObject({ statusCode: 503 })
    expect(requests).toHaveLength(3)
  })

  test('throws for a failure and for missing files', async () => {
    const failed = withResponses([
      created,
      () => taskResponse('FAILURE', { fail_code: 'no_output', fail_reason: 'Nothing.' }),
    ])
    expect(await thrownBy(failed.threeD.generate({ prompt: 'x' }))).toMatchObject({ failCode: 'no_output' })
    const missing = withResponses([created, () => taskResponse('SUCCESS', { outputs: [] })])
    expect(await thrownBy(missing.threeD.generate({ prompt: 'x' }))).toMatchObject({
      message: expect.stringContaining('task_1'),
    })
  })

  test('prefers the task settings of the call', async () => {
    const { threeD } = withResponses([created, () => taskResponse('QUEUED')])
    const error = await thrownBy(threeD.generate({ prompt: 'x', timeoutMs: 10, pollIntervalMs: 1 }))
    expect(TaskTimeoutError.isInstance(error)).toBe(true)
  })
})

test('sends the webhook of the AI SDK as callback_url', async () => {
  const { requests, video } = withResponses([created])
  let arrived = false
  const received = new Promise<never>(() => {})
  const webhook = async () => {
    arrived = true
    return { url: 'https://a.example/hook', received }
  }
  const { webhookUrl } = await video.handleWebhookOption({ webhook })
  await video.doStart({ ...ORDER, webhookUrl })
  expect(arrived).toBe(true)
  expect(requests[0]?.body).toMatchObject({ callback_url: 'https://a.example/hook' })
})
