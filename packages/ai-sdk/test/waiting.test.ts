/** Waiting for a task: what ends it, what does not, and what is sent on the way, before a gateway that plays a script. */
import { describe, expect, spyOn, test } from 'bun:test'
import { APICallError } from '@ai-sdk/provider'
import {
  createGatehouse,
  generateThreeD,
  TaskFailedError,
  type TaskSettings,
  TaskTimeoutError,
} from '../src/gatehouse.ts'

type Came = { method: string; path: string; headers: Headers; body: unknown }
type Play = (came: Came, signal: AbortSignal | null | undefined) => Response | Promise<Response>

const BASE = 'https://gateway.test/v1'
const created = () => Response.json({ code: 'success', data: { task_id: 'task_1' }, message: '', fail_code: '' })
const told = (status: string, more: object = {}) =>
  Response.json({ code: 'success', message: '', data: { task_id: 'task_1', status, progress: '30%', ...more } })
const refused = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { message: `It is ${code}.`, type: 't', param: null, code } }, { status, headers })
const done = () => told('SUCCESS', { outputs: ['https://cdn.test/a/kite.mp4?key=1'] })
const lost = () => {
  throw new TypeError('fetch failed', { cause: new Error('socket hang up') })
}
/** Holds the answer back until the asker leaves. */
const held = (signal: AbortSignal | null | undefined) =>
  new Promise<Response>((_, reject) =>
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  )

/** Each request is answered by the next of the script; after its end by the last one again. */
function playing(script: Play[], tasks: TaskSettings = {}) {
  const came: Came[] = []
  const asked = async (input: string | URL | Request, init: RequestInit = {}) => {
    const url = new URL(String(input))
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    const one = {
      method: init.method ?? 'GET',
      path: url.pathname + url.search,
      headers: new Headers(init.headers),
      body,
    }
    came.push(one)
    const play = script[Math.min(came.length, script.length) - 1]
    if (!play) throw new Error('nothing to play')
    return play(one, init.signal)
  }
  const settings = { baseURL: BASE, apiKey: 'k', tasks: { pollIntervalMs: 0, ...tasks } }
  const gatehouse = createGatehouse({ ...settings, fetch: asked as typeof fetch })
  return { came, gatehouse, video: gatehouse.video('m'), threeD: gatehouse.threeD('m') }
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

describe('a video, ordered and waited for', () => {
  test('is asked for until it is done, each question held back by the gateway', async () => {
    const { came, video } = playing([created, () => told('NOT_START'), () => told('IN_PROGRESS'), done])
    const { videos, providerMetadata, response, warnings } = await video.doGenerate({ ...ORDER })
    expect(videos).toEqual([{ type: 'url', url: 'https://cdn.test/a/kite.mp4?key=1', mediaType: 'video/mp4' }])
    expect(providerMetadata?.gatehouse).toMatchObject({ taskId: 'task_1', status: 'SUCCESS' })
    expect([response.modelId, warnings]).toEqual(['m', []])
    expect(came.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/video/generations',
      ...Array(3).fill('GET /v1/video/generations/task_1?wait=25'),
    ])
    expect(came[0]?.body).toEqual({ model: 'm', prompt: 'A kite' })
    for (const { headers } of came) {
      expect(headers.get('authorization')).toBe('Bearer k')
      expect(headers.get('user-agent')).toContain('gatehouse-ai-sdk/0.1.0')
    }
    expect(came.slice(1).map(({ headers }) => headers.get('idempotency-key'))).toEqual([null, null, null])
  })

  test.each([
    ['https://cdn.test/a/kite.webm', 'video/webm'],
    ['https://cdn.test/a/kite', 'video/mp4'],
  ])('%s is of the type %s', async (url, mediaType) => {
    const { video } = playing([created, () => told('SUCCESS', { outputs: [url] })])
    expect((await video.doGenerate({ ...ORDER })).videos).toEqual([{ type: 'url', url, mediaType }])
  })

  test('a link of the gateway is described by the gateway', async () => {
    const url = `${BASE}/videos/task_1/content?signature=s`
    const { came, video } = playing([
      created,
      () => told('SUCCESS', { outputs: [url] }),
      () => new Response(null, { headers: { 'content-type': 'video/webm; codecs=vp9' } }),
    ])
    expect((await video.doGenerate({ ...ORDER })).videos).toEqual([{ type: 'url', url, mediaType: 'video/webm' }])
    expect(came.at(-1)).toMatchObject({ method: 'HEAD', path: '/v1/videos/task_1/content?signature=s' })
    expect(came.at(-1)?.headers.get('authorization')).toBeNull()
  })

  test('whether links or bytes are handed out is the caller’s to say', async () => {
    const outputs = ['https://cdn.test/kite.mp4']
    const bytes = () => new Response(new Uint8Array([1, 2]), { headers: { 'content-type': 'video/webm' } })
    const { came, video } = playing([created, () => told('SUCCESS', { outputs }), bytes], { videoData: 'binary' })
    const { videos } = await video.doGenerate({ ...ORDER })
    expect(videos).toEqual([{ type: 'binary', data: new Uint8Array([1, 2]), mediaType: 'video/webm' }])
    expect(came.at(-1)?.headers.get('authorization')).toBeNull()
  })

  test('a question that fails for a while says nothing about the task', async () => {
    const { came, video } = playing([
      created,
      () => refused(503, 'server_is_overloaded'),
      lost,
      () => refused(500, 'x'),
      done,
    ])
    expect((await video.doGenerate({ ...ORDER })).videos).toHaveLength(1)
    expect(came.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET', 'GET'])
  })

  test('a question that nobody answers is given up, and asked again', async () => {
    const limits: number[] = []
    const timeout = spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
      limits.push(milliseconds)
      return limits.length === 1
        ? AbortSignal.abort(new DOMException('late', 'TimeoutError'))
        : new AbortController().signal
    })
    try {
      const { came, video } = playing([created, (_, signal) => Promise.reject(signal?.reason), done])
      expect((await video.doGenerate({ ...ORDER })).videos).toHaveLength(1)
      expect(came.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET'])
      expect(limits).toEqual([55_000, 55_000])
    } finally {
      timeout.mockRestore()
    }
  })

  test('a question that fails for long ends the call, and the same call again orders nothing new', async () => {
    const { came, video } = playing([created, ...Array(7).fill(() => refused(503, 'x')), created, done])
    const order = { ...ORDER }
    expect(await thrownBy(video.doGenerate(order))).toMatchObject({ statusCode: 503, isRetryable: true })
    expect(came).toHaveLength(8)
    await video.doGenerate(order)
    const keys = came.filter(({ method }) => method === 'POST').map(({ headers }) => headers.get('idempotency-key'))
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^gatehouse_[\da-f-]{36}$/)
  })

  test('a question that is refused ends the call at once', async () => {
    const { came, video } = playing([created, () => refused(404, 'task_not_exist')])
    expect(await thrownBy(video.doGenerate({ ...ORDER }))).toMatchObject({
      message: 'It is task_not_exist.',
      statusCode: 404,
      isRetryable: false,
    })
    expect(came).toHaveLength(2)
  })

  test.each([
    [{ fail_code: 'content_policy_violation', fail_reason: 'No kites.' }, 'content_policy_violation: No kites.'],
    [{ fail_code: '', fail_reason: '' }, 'generation_failed'],
  ])('a failure %j is an error of its own', async (fields, message) => {
    const { video } = playing([created, () => told('FAILURE', fields)])
    const error = await thrownBy(video.doGenerate({ ...ORDER }))
    expect(TaskFailedError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ message, taskId: 'task_1', failReason: fields.fail_reason })
  })

  test('an answer that nobody can read is no task', async () => {
    for (const body of ['<html>', '{}', '{"data":{"task_id":""}}']) {
      const { video } = playing([() => new Response(body)])
      expect(APICallError.isInstance(await thrownBy(video.doGenerate({ ...ORDER })))).toBe(true)
    }
  })

  test('waiting has an end, of which the task knows nothing', async () => {
    const { came, video } = playing([created, () => told('QUEUED')], { timeoutMs: 30, pollIntervalMs: 5 })
    const error = await thrownBy(video.doGenerate({ ...ORDER }))
    expect(TaskTimeoutError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ taskId: 'task_1' })
    const waits = came.slice(1).map(({ path }) => Number(new URL(path, BASE).searchParams.get('wait')))
    expect(waits.every((seconds) => seconds > 0 && seconds <= 0.03)).toBe(true)
    expect(came.filter(({ path }) => path.endsWith('/cancel'))).toEqual([])
  })
})

describe('the key of an order', () => {
  test('is the caller’s own, however it is spelled', async () => {
    const { came, video } = playing([created, done])
    await video.doGenerate({ ...ORDER, headers: { 'Idempotency-Key': 'mine' } })
    expect(came.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', null])
  })

  test('is another for another call of the same words', async () => {
    const { came, video, threeD } = playing([created])
    await video.doStart({ ...ORDER })
    await video.doStart({ ...ORDER })
    await threeD.start({ prompt: 'A kite' })
    expect(new Set(came.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(3)
  })
})

describe('a call that is aborted', () => {
  /** Aborts once the first question is under way. */
  function aborting(tasks: TaskSettings, cancel: Play = () => told('FAILURE', { fail_code: 'canceled' })) {
    const controller = new AbortController()
    const question: Play = (_, signal) => {
      const answer = held(signal)
      controller.abort()
      return answer
    }
    return { ...playing([created, question, cancel], tasks), abortSignal: controller.signal }
  }

  test('ends at once, and its task goes on', async () => {
    const { came, video, abortSignal } = aborting({})
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal }))).toMatchObject({ name: 'AbortError' })
    expect(came.map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  test('has its task canceled where that was asked for, with the caller’s headers', async () => {
    const { came, video, abortSignal } = aborting({ cancelOnAbort: true })
    const call = video.doGenerate({ ...ORDER, abortSignal, headers: { 'X-Team': 'a' } })
    expect(await thrownBy(call)).toMatchObject({ name: 'AbortError' })
    expect(came.at(-1)).toMatchObject({ method: 'POST', path: '/v1/video/generations/task_1/cancel' })
    expect(came.at(-1)?.headers.get('x-team')).toBe('a')
  })

  test('tells of the abort even when canceling fails', async () => {
    const { came, video, abortSignal } = aborting({ cancelOnAbort: true }, () => refused(500, 'internal_error'))
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal }))).toMatchObject({ name: 'AbortError' })
    expect(came).toHaveLength(3)
  })

  test('orders nothing when it was aborted before', async () => {
    const { video, threeD } = playing([(_, signal) => (signal?.aborted ? Promise.reject(signal.reason) : created())])
    const abortSignal = AbortSignal.abort()
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal }))).toMatchObject({ name: 'AbortError' })
    expect(await thrownBy(threeD.generate({ prompt: 'x', abortSignal }))).toMatchObject({ name: 'AbortError' })
  })

  test('between two questions ends at once too', async () => {
    const controller = new AbortController()
    const question: Play = () => {
      queueMicrotask(() => setTimeout(() => controller.abort(), 1))
      return told('QUEUED')
    }
    const { came, video } = playing([created, question], { pollIntervalMs: 60_000 })
    expect(await thrownBy(video.doGenerate({ ...ORDER, abortSignal: controller.signal }))).toMatchObject({
      name: 'AbortError',
    })
    expect(came).toHaveLength(2)
  })
})

describe('a single question', () => {
  const operation = { task_id: 'task_1' }

  test.each([
    [() => told('NOT_START'), { status: 'pending' }],
    [() => told('IN_PROGRESS'), { status: 'pending', providerMetadata: { gatehouse: { progress: '30%' } } }],
    [done, { status: 'completed', warnings: [], videos: [{ type: 'url' }] }],
    [
      () => told('FAILURE', { fail_code: 'timeout', fail_reason: 'Too slow.' }),
      {
        status: 'error',
        error: 'timeout: Too slow.',
        providerMetadata: { gatehouse: { taskId: 'task_1', failCode: 'timeout', failReason: 'Too slow.' } },
      },
    ],
  ])('%# tells the state', async (play, wanted) => {
    const { came, video } = playing([play])
    expect(await video.doStatus({ operation })).toMatchObject(wanted as object)
    expect(came[0]?.path).toBe('/v1/video/generations/task_1')
  })

  test('is held back as long as the caller says, and knows a bare id', async () => {
    const { came, video, threeD } = playing([() => told('QUEUED')], { statusWaitSeconds: 7.5 })
    await video.doStatus({ operation: 'task/1' })
    await threeD.status({ operation: 'task_1' })
    expect(came.map(({ path }) => path)).toEqual([
      '/v1/video/generations/task%2F1?wait=7.5',
      '/v1/3d/generations/task_1?wait=7.5',
    ])
  })

  test.each([[null], [''], [7], [{}], [{ task_id: '' }]])('%j is no operation', async (nothing) => {
    const { came, video } = playing([done])
    expect(await thrownBy(video.doStatus({ operation: nothing }))).toBeInstanceOf(TypeError)
    expect(came).toEqual([])
  })
})

describe('a 3D model, ordered and waited for', () => {
  const outputs = [`${BASE}/3d/generations/task_1/content?index=0`, 'https://cdn.test/teapot.png']
  const described = () =>
    new Response(null, {
      headers: { 'content-type': 'model/gltf-binary', 'content-disposition': 'attachment; filename="task_1.glb"' },
    })

  test('an order whose answer was lost is sent again with its key, and its files are described', async () => {
    const { came, threeD } = playing([lost, created, () => told('SUCCESS', { outputs }), described])
    const { taskId, file, files } = await generateThreeD({ model: threeD, prompt: 'A teapot', format: 'glb' })
    expect(taskId).toBe('task_1')
    expect(files.map(({ format, mediaType, filename }) => [format, mediaType, filename])).toEqual([
      ['glb', 'model/gltf-binary', 'task_1.glb'],
      ['png', 'image/png', 'teapot.png'],
    ])
    expect(file).toBe(files[0] as typeof file)
    const posts = came.filter(({ method }) => method === 'POST')
    expect(posts.map(({ path }) => path)).toEqual(Array(2).fill('/v1/3d/generations'))
    expect(posts[0]?.headers.get('idempotency-key')).toBe(posts[1]?.headers.get('idempotency-key') ?? '')
  })

  test('a download that is refused is told with its status', async () => {
    const { threeD } = playing([
      created,
      () => told('SUCCESS', { outputs }),
      described,
      () => refused(403, 'link_expired'),
    ])
    const { file } = await threeD.generate({ prompt: 'A teapot' })
    expect(await thrownBy(file.download())).toMatchObject({ statusCode: 403 })
  })

  test('a link into a private network that is not the gateway’s is not followed', async () => {
    const { came, threeD } = playing([created, () => told('SUCCESS', { outputs: ['http://10.0.0.5/teapot.glb'] })])
    const { file } = await threeD.generate({ prompt: 'A teapot' })
    expect(await thrownBy(file.download())).toMatchObject({ name: 'AI_DownloadError' })
    expect(came).toHaveLength(2)
  })

  test('a refused order is not sent again', async () => {
    for (const play of [() => refused(400, 'invalid_value'), () => refused(503, 'x', { 'x-should-retry': 'false' })]) {
      const { came, threeD } = playing([play])
      expect(APICallError.isInstance(await thrownBy(threeD.generate({ prompt: 'x' })))).toBe(true)
      expect(came).toHaveLength(1)
    }
  })

  test('an order that always fails is sent as often as was said', async () => {
    const { came, threeD } = playing([() => refused(503, 'server_is_overloaded')])
    expect(await thrownBy(threeD.generate({ prompt: 'x', maxRetries: 1 }))).toMatchObject({ statusCode: 503 })
    expect(await thrownBy(threeD.generate({ prompt: 'x', maxRetries: 0 }))).toMatchObject({ statusCode: 503 })
    expect(came).toHaveLength(3)
  })

  test('a failure, and files that are gone, are errors', async () => {
    const failed = playing([created, () => told('FAILURE', { fail_code: 'no_output', fail_reason: 'Nothing.' })])
    expect(await thrownBy(failed.threeD.generate({ prompt: 'x' }))).toMatchObject({ failCode: 'no_output' })
    const gone = playing([created, () => told('SUCCESS', { outputs: [] })])
    expect(await thrownBy(gone.threeD.generate({ prompt: 'x' }))).toMatchObject({
      message: expect.stringContaining('task_1'),
    })
  })

  test('what a call says of waiting wins', async () => {
    const { threeD } = playing([created, () => told('QUEUED')])
    const error = await thrownBy(threeD.generate({ prompt: 'x', timeoutMs: 10, pollIntervalMs: 1 }))
    expect(TaskTimeoutError.isInstance(error)).toBe(true)
  })
})

test('the webhook of the AI SDK is the gateway’s callback', async () => {
  const { came, video } = playing([created])
  let arrived = false
  const received = new Promise<never>(() => {})
  const webhook = async () => {
    arrived = true
    return { url: 'https://a.example/hook', received }
  }
  const { webhookUrl } = await video.handleWebhookOption({ webhook })
  await video.doStart({ ...ORDER, webhookUrl })
  expect(arrived).toBe(true)
  expect(came[0]?.body).toMatchObject({ callback_url: 'https://a.example/hook' })
})
