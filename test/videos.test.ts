/** Videos over HTTP as the specification defines them, and the files of both APIs: every state, every error. */
import { afterAll, describe, expect, test } from 'bun:test'
import type { Task } from '../src/spec/task.ts'
import { BYTES, createVideoApp, FAILURE, NOW, SUCCESS } from './kit/video-app.ts'

const gateway = await createVideoApp()
afterAll(() => gateway.close())
const { call, addTask } = gateway
const addFinishedTask = gateway.addFinishedTask.bind(gateway)

const GENERATIONS = '/v1/video/generations'
const ORDER = { model: 'acme/film', prompt: 'a boat' }
const order = (more: object = {}, ask: Parameters<typeof call>[1] = {}) =>
  call(GENERATIONS, { json: { ...ORDER, ...more }, ...ask })
const stored = async (answer: Response): Promise<Task> => {
  const { data } = (await answer.json()) as { data: { task_id: string } }
  return (await gateway.store.tasks.find(data.task_id)) as Task
}
describe('an order', () => {
  test('is answered as in section 2.6 once it is stored', async () => {
    const answer = await order()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(answer.headers.has('idempotent-replayed')).toBe(false)
    const body = await answer.clone().json()
    expect(body).toEqual({
      code: 'success',
      data: { task_id: expect.stringMatching(/^task_[A-Za-z0-9]{32}$/) },
      message: '',
      fail_code: '',
    })
    expect(await stored(answer)).toMatchObject({
      status: 'NOT_START',
      token_id: 'tok_one',
      family: 'video-generation',
      request: { model: 'acme/film', prompt: 'a boat', duration: 4, n: 1 },
      base_url: 'http://gatehouse.test',
    })
  })

  test('that is rejected reports the reason in all the forms that clients of this family read', async () => {
    const answer = await order({ duration: 5 })
    expect(answer.status).toBe(400)
    const message = '"duration" must be one of 4, 8 for the model "acme/film", not 5.'
    expect(await answer.json()).toEqual({
      code: 'invalid_value',
      message,
      data: null,
      fail_code: 'invalid_input',
      error: { message, type: 'invalid_request_error', param: 'duration', code: 'invalid_value' },
    })
  })

  test.each([
    [{ model: 'acme/none' }, 404, 'model_not_found', 'model_unavailable'],
    [{ model: 'acme/talk' }, 400, 'unsupported_endpoint', 'model_unavailable'],
    [{ prompt: undefined }, 400, 'missing_required_parameter', 'invalid_input'],
    [{ callback_url: 'ftp://x.test' }, 400, 'invalid_value', 'invalid_input'],
    [{ image: 'cat.png' }, 400, 'invalid_value', 'invalid_input'],
  ])('%j is rejected: %i %s, %s', async (more, status, code, fail_code) => {
    const answer = await order(more)
    expect([answer.status, await answer.json()]).toMatchObject([
      status,
      { code, fail_code, data: null, error: { code } },
    ])
  })

  test('that is not JSON, or too large, is rejected in the same form', async () => {
    const broken = await call(GENERATIONS, { json: {}, headers: { 'content-type': 'text/plain' } })
    expect([broken.status, (await broken.json()).code]).toEqual([415, 'unsupported_media_type'])
    const large = await order({}, { headers: { 'content-length': String(33 * 1024 * 1024) } })
    expect([large.status, (await large.json()).error.code]).toEqual([413, 'request_too_large'])
  })

  test('may be a form, with its files', async () => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ ...ORDER, duration: '8', seed: '7' })) form.append(name, value)
    const png = Buffer.from('iVBORw0KGgo=', 'base64')
    form.append('image', new File([png], 'a', { type: 'application/octet-stream' }))
    const task = await stored(await call(GENERATIONS, { form }))
    expect(task.request).toMatchObject({ duration: 8, seed: 7 })
    const inputs = await gateway.store.tasks.inputs(task.task_id)
    expect(inputs).toEqual({ image: 'data:image/png;base64,iVBORw0KGgo=' })
  })

  test('has headers that report a model to be retired, and a model that replaces another', async () => {
    const old = await order({ model: 'acme/old' })
    expect(old.headers.get('deprecation')).toBe(`@${NOW - 60}`)
    expect(old.headers.get('x-model-replaced-by')).toBe('acme/film')
    expect(old.headers.has('x-model-served')).toBe(false)
    const gone = await order({ model: 'acme/gone' })
    expect(gone.headers.get('x-model-requested')).toBe('acme/gone')
    expect(gone.headers.get('x-model-served')).toBe('acme/film')
    expect((await stored(gone)).model).toBe('acme/film')
  })
})

describe('Idempotency-Key', () => {
  const keyed = (key: string, more: object = {}) => order(more, { headers: { 'idempotency-key': key } })

  test('returns the first task for a repeated order, and reports the replay', async () => {
    const first = await keyed('k1')
    const again = await keyed('k1')
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await again.json()).toEqual(await first.json())
  })

  test('is rejected for another order, as not retryable', async () => {
    await keyed('k2')
    const other = await keyed('k2', { duration: 8 })
    expect([other.status, other.headers.get('x-should-retry')]).toEqual([422, 'false'])
    expect((await other.json()).code).toBe('idempotency_key_reused')
  })

  test('has 1 to 255 visible characters', async () => {
    for (const key of ['!', '~'.repeat(255)]) expect((await keyed(key)).status).toBe(200)
    for (const key of ['', 'a'.repeat(256), 'a b', 'é', 'a\tb']) {
      const answer = await keyed(key)
      expect([key.length, answer.status]).toEqual([key.length, 400])
      expect(await answer.json()).toMatchObject({ error: { param: 'Idempotency-Key' } })
    }
  })
})

describe('reading a task', () => {
  const state = async (task: Task) => call(`${GENERATIONS}/${task.task_id}`)

  test.each<[Partial<Task>, string]>([
    [{}, '0%'],
    [{ status: 'SUBMITTED', progress: 10 }, '10%'],
    [{ status: 'QUEUED', progress: 20 }, '20%'],
    [{ status: 'IN_PROGRESS', progress: 47, start_time: NOW - 3 }, '47%'],
  ])('in progress returns no outputs and no failure: %j', async (more, progress) => {
    const task = await addTask(more)
    const answer = await state(task)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(await answer.json()).toEqual({
      code: 'success',
      message: '',
      data: {
        task_id: task.task_id,
        status: task.status,
        progress,
        submit_time: NOW - 10,
        start_time: task.start_time,
        finish_time: 0,
        fail_code: '',
        fail_reason: '',
      },
    })
  })

  test('after a success returns fresh links to the files, and no retry-after', async () => {
    const task = await addFinishedTask()
    const answer = await state(task)
    expect(answer.headers.has('retry-after')).toBe(false)
    const link = gateway.outputs.link({
      base_url: 'http://gatehouse.test',
      path: '/v1/videos',
      task_id: task.task_id,
      index: 0,
    })
    expect(await answer.json()).toEqual({
      code: 'success',
      message: '',
      data: {
        task_id: task.task_id,
        status: 'SUCCESS',
        progress: '100%',
        outputs: [link],
        result_url: link,
        submit_time: NOW - 10,
        start_time: NOW - 8,
        finish_time: NOW - 2,
        fail_code: '',
        fail_reason: '',
      },
    })
    gateway.clock.advance(3_600_000)
    const later = (await (await state(task)).json()) as { data: { result_url: string } }
    expect(later.data.result_url).not.toBe(link)
    gateway.clock.advance(-3_600_000)
  })

  test('with passthrough outputs returns the URLs of the provider', async () => {
    const url = 'https://files.acme.test/a.mp4'
    const { data } = await (
      await state(await addTask({ ...SUCCESS, outputs: [{ url, content_type: 'video/mp4' }] }))
    ).json()
    expect(data).toMatchObject({ outputs: [url], result_url: url })
  })

  test('whose files have expired is still a success, without files', async () => {
    const { data } = await (await state(await addTask({ ...SUCCESS, outputs: [] }))).json()
    expect(data).toMatchObject({ status: 'SUCCESS', outputs: [] })
    expect('result_url' in data).toBe(false)
  })

  test('after a failure returns the reason, and no outputs', async () => {
    const answer = await state(await addTask(FAILURE))
    expect(answer.headers.has('retry-after')).toBe(false)
    const { data } = await answer.json()
    expect(data).toMatchObject({
      status: 'FAILURE',
      progress: '100%',
      fail_code: 'generation_failed',
      fail_reason: 'The upstream could not make it.',
    })
    expect('outputs' in data || 'result_url' in data).toBe(false)
  })

  test('returns the same error for a missing task and for one of another token, on every path', async () => {
    const { task_id } = await addFinishedTask()
    for (const [method, path] of [
      ['GET', '/v1/video/generations/:id'],
      ['GET', '/v1/video/generations/:id?wait=5'],
      ['POST', '/v1/video/generations/:id/cancel'],
      ['GET', '/v1/videos/:id'],
      ['DELETE', '/v1/videos/:id'],
      ['GET', '/v1/videos/:id/content'],
    ] as const) {
      const ask = (id: string) => call(path.replace(':id', id), { method, token: 'two' })
      const [foreign, unknown] = [await ask(task_id), await ask(`task_${'x'.repeat(32)}`)]
      expect([path, foreign.status]).toEqual([path, 404])
      expect(await foreign.text()).toBe(await unknown.text())
      expect([...foreign.headers.keys()]).toEqual([...unknown.headers.keys()])
    }
    expect((await call(`${GENERATIONS}/${task_id}`)).status).toBe(200)
  })
})

describe('a long poll', () => {
  const ask = (task: Task, wait: string, more: Parameters<typeof call>[1] = {}) =>
    call(`${GENERATIONS}/${task.task_id}?wait=${wait}`, more)

  test('returns at once when the task has ended', async () => {
    expect((await ask(await addFinishedTask(), '60')).status).toBe(200)
  })

  test('returns when the task changes', async () => {
    const task = await addTask()
    const answer = ask(task, '60')
    const [claimed] = await gateway.store.tasks
      .claim({
        by: 'w',
        provider: '',
        now_ms: gateway.clock.now(),
        until_ms: gateway.clock.now() + 60_000,
        limit: 100,
      })
      .then((all) => all.filter(({ task_id }) => task_id === task.task_id))
    await gateway.store.tasks.save(claimed as Task, { status: 'SUBMITTED', progress: 10, due_ms: null })
    expect((await (await answer).json()).data.status).toBe('SUBMITTED')
  })

  test('returns the unchanged task when its time is up', async () => {
    const task = await addTask()
    const answer = ask(task, '2.5')
    const done = answer.then(() => true)
    for (let second = 0; second < 3; second++) {
      expect(await Promise.race([done, settled()])).toBe(false)
      gateway.clock.advance(1_000)
      await settled()
    }
    expect((await (await answer).json()).data.status).toBe('NOT_START')
    gateway.clock.advance(-3_000)
  })

  test('ends when its client disconnects', async () => {
    const task = await addTask()
    const control = new AbortController()
    const answer = ask(task, '60', { signal: control.signal })
    await settled()
    control.abort()
    expect((await answer).status).toBe(499)
  })

  test('accepts 0 to 60 seconds', async () => {
    const task = await addFinishedTask()
    for (const wait of ['0', '60', '0.5', '60.0']) expect((await ask(task, wait)).status).toBe(200)
    for (const wait of ['', '-1', '60.1', '61', 'a', '1e1', '0x1', ' 5']) {
      const answer = await ask(task, encodeURIComponent(wait))
      expect([wait, answer.status]).toEqual([wait, 400])
      expect((await answer.json()).error.param).toBe('wait')
    }
  })
})

/** Lets all work that does not wait for the clock finish. */
const settled = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
  return false
}

describe('the list of tasks', () => {
  const listed = async (query: string, token = 'lister') => {
    const answer = await call(`${GENERATIONS}${query}`, { token })
    return (await answer.json()).data as {
      tasks: { task_id: string; status: string }[]
      has_more: boolean
      next_cursor: string
    }
  }

  test("contains the token's own tasks, newest first, page by page", async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push((await addTask({ token_id: 'tok_lister', submit_time: NOW + i })).task_id)
    await addTask({ ...FAILURE, token_id: 'tok_lister', submit_time: NOW + 9 })
    const newest = ids.toReversed()
    const first = await listed('?limit=3')
    expect(first.tasks.map(({ task_id }) => task_id).slice(1)).toEqual(newest.slice(0, 2))
    expect([first.has_more, first.next_cursor]).toEqual([true, newest[1] ?? ''])
    const rest = await listed(`?limit=3&after=${first.next_cursor}`)
    expect(rest.tasks.map(({ task_id }) => task_id)).toEqual(newest.slice(2))
    expect([rest.has_more, rest.next_cursor]).toEqual([false, ''])
    expect((await listed('?order=asc')).tasks.map(({ task_id }) => task_id).slice(0, 5)).toEqual(ids)
  })

  test('is filtered by states', async () => {
    expect((await listed('?status=FAILURE')).tasks.map(({ status }) => status)).toEqual(['FAILURE'])
    expect((await listed('?status=NOT_START,FAILURE')).tasks).toHaveLength(6)
    expect((await listed('?status=SUCCESS')).tasks).toEqual([])
    expect((await listed('', 'nobody')).tasks).toEqual([])
  })

  test.each(['limit=0', 'limit=101', 'limit=', 'limit=1.5', 'limit=-1', 'order=up', 'status=', 'status=queued'])(
    '%s is rejected with the allowed values',
    async (query) => {
      for (const path of query.startsWith('status') ? [GENERATIONS] : [GENERATIONS, '/v1/videos']) {
        const answer = await call(`${path}?${query}`)
        expect(answer.status).toBe(400)
        expect((await answer.json()).error.param).toBe(query.split('=')[0])
      }
    },
  )

  test('rejects a cursor that is unknown, of another token or of another API, and accepts one of a deleted task', async () => {
    const own = await addTask({ token_id: 'tok_lister', submit_time: NOW + 20 })
    const deleted = await addTask({ ...SUCCESS, token_id: 'tok_lister', submit_time: NOW + 21 })
    const solid = await addTask({ token_id: 'tok_lister', family: '3d-generation' })
    const foreign = await addTask({ token_id: 'tok_other' })
    for (const path of [GENERATIONS, '/v1/videos']) {
      for (const after of ['task_none', foreign.task_id, solid.task_id]) {
        const answer = await call(`${path}?after=${after}`, { token: 'lister' })
        expect([after, answer.status]).toEqual([after, 400])
        expect((await answer.json()).error).toMatchObject({ code: 'invalid_value', param: 'after' })
      }
      expect((await call(`${path}?after=${own.task_id}`, { token: 'lister' })).status).toBe(200)
    }
    await call(`/v1/videos/${deleted.task_id}`, { method: 'DELETE', token: 'lister' })
    expect((await listed(`?limit=1&after=${deleted.task_id}`)).tasks[0]?.task_id).toBe(own.task_id)
    // The cursor need not have the state that the list is filtered by: it may have changed since.
    expect((await call(`${GENERATIONS}?status=SUCCESS&after=${own.task_id}`, { token: 'lister' })).status).toBe(200)
  })

  test('has pages of 1 to 100', async () => {
    for (const limit of [1, 100]) expect((await call(`${GENERATIONS}?limit=${limit}`)).status).toBe(200)
  })
})

describe('canceling', () => {
  const cancel = (task: Task) => call(`${GENERATIONS}/${task.task_id}/cancel`, { method: 'POST' })

  test('stores the request, and returns the task unchanged', async () => {
    const task = await addTask()
    const answer = await cancel(task)
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { code: 'success', message: 'The task is being canceled.', data: { task_id: task.task_id, status: 'NOT_START' } },
    ])
    expect(answer.headers.has('retry-after')).toBe(true)
    expect((await gateway.store.tasks.find(task.task_id))?.cancel_asked_at).toBe(NOW)
  })

  test('leaves an ended task unchanged, and says so', async () => {
    const { message, data } = await (await cancel(await addTask(FAILURE))).json()
    expect([message, data.status, data.fail_code]).toEqual([
      'The task had already ended.',
      'FAILURE',
      'generation_failed',
    ])
  })
})

describe('in the chat-compatible API', () => {
  const video = async ({ task_id }: Task) => (await call(`/v1/videos/${task_id}`)).json()

  test.each<[Partial<Task>, string]>([
    [{}, 'queued'],
    [{ status: 'SUBMITTED', progress: 10 }, 'queued'],
    [{ status: 'QUEUED', progress: 20 }, 'queued'],
    [{ status: 'IN_PROGRESS', progress: 47, start_time: NOW - 3 }, 'in_progress'],
    [SUCCESS, 'completed'],
    [FAILURE, 'failed'],
  ])('%j is %s', async (more, status) => {
    const task = await addTask(more)
    expect(await video(task)).toEqual({
      id: task.task_id,
      object: 'video',
      model: 'acme/film',
      status,
      progress: task.progress,
      created_at: NOW - 10,
      completed_at: status === 'completed' ? NOW - 2 : null,
      expires_at: status === 'completed' ? task.outputs_expire_at : null,
      prompt: 'a boat',
      seconds: '4',
      size: '720x1280',
      remixed_from_video_id: null,
      error: status === 'failed' ? { code: 'generation_failed', message: 'The upstream could not make it.' } : null,
    })
  })

  test('a field is empty if neither the request nor the model sets it', async () => {
    const task = await addTask({ request: { model: 'acme/film', prompt: 'a boat', n: 1 } })
    expect(await video(task)).toMatchObject({ seconds: '', size: '' })
  })

  test('a JSON order returns its video, and the same order the same video', async () => {
    const ask = () =>
      call('/v1/videos', {
        json: { model: 'film', prompt: 'a boat', seconds: '8', input_reference: { image_url: 'https://x.test/a.png' } },
        headers: { 'idempotency-key': 'v1' },
      })
    const [first, again] = [await ask(), await ask()]
    const body = await first.json()
    expect(body).toMatchObject({ object: 'video', status: 'queued', seconds: '8', model: 'acme/film' })
    expect([again.headers.get('idempotent-replayed'), await again.json()]).toEqual(['true', body])
    const task = await gateway.store.tasks.find(body.id)
    expect(task?.family).toBe('chatcompat-video')
    expect(await gateway.store.tasks.inputs(body.id)).toEqual({ image: 'https://x.test/a.png' })
  })

  test('an unfinished video cannot be deleted; an ended one is deleted with its file', async () => {
    const path = ({ task_id }: Task) => `/v1/videos/${task_id}`
    const refused = await call(path(await addTask()), { method: 'DELETE' })
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([409, 'false'])
    expect((await refused.json()).code).toBe('task_not_ended')
    const task = await addFinishedTask()
    const link = gateway.outputs.link({
      base_url: 'http://gatehouse.test',
      path: '/v1/videos',
      task_id: task.task_id,
      index: 0,
    })
    const deleted = await call(path(task), { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ id: task.task_id, object: 'video.deleted', deleted: true })
    expect((await call(path(task))).status).toBe(404)
    expect((await call(link, { token: '' })).status).toBe(404)
    expect((await call(path(task), { method: 'DELETE' })).status).toBe(404)
  })

  test('an empty list has no first and last id', async () => {
    expect(await (await call('/v1/videos', { token: 'nobody' })).json()).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
  })
})

test("errors below the family's paths have the family's form", async () => {
  for (const [method, path, status, code] of [
    ['GET', '/v1/video/nothing', 404, 'unknown_url'],
    ['GET', '/v1/videos/a/b/c', 404, 'unknown_url'],
    ['POST', '/v1/videos/a/remix', 404, 'unknown_url'],
    ['DELETE', GENERATIONS, 405, 'method_not_allowed'],
  ] as const) {
    const answer = await call(path, { method })
    expect([path, answer.status, await answer.json()]).toMatchObject([
      path,
      status,
      { code, data: null, error: { code } },
    ])
  }
  const nobody = await call(GENERATIONS, { token: '' })
  expect([nobody.status, (await nobody.json()).code]).toEqual([401, 'invalid_api_key'])
  const elsewhere = await (await call('/v1/other')).json()
  expect(Object.keys(elsewhere)).toEqual(['error'])
})

describe('links lead', () => {
  const baseOf = async (server: object, headers: Record<string, string> = {}, origin = 'http://gatehouse.test') => {
    const other = await createVideoApp({ server })
    const answer = await other.call(`${origin}${GENERATIONS}`, { json: ORDER, headers })
    const { data } = (await answer.json()) as { data: { task_id: string } }
    const task = await other.store.tasks.find(data.task_id)
    await other.close()
    return task?.base_url
  }
  const FORWARDED = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example.com:8443, inner' }

  test('to the address that the client used', async () => {
    expect(await baseOf({}, {}, 'http://127.0.0.1:9')).toBe('http://127.0.0.1:9')
    expect(await baseOf({}, FORWARDED)).toBe('http://gatehouse.test')
  })

  test('to the address of a trusted proxy', async () => {
    const server = { trust_proxy: true }
    expect(await baseOf(server, FORWARDED)).toBe('https://api.example.com:8443')
    expect(await baseOf(server, { 'x-forwarded-proto': 'HTTPS' })).toBe('https://gatehouse.test')
    const strange = { 'x-forwarded-proto': 'javascript', 'x-forwarded-host': 'evil.test/path?' }
    expect(await baseOf(server, strange)).toBe('http://gatehouse.test')
  })

  test('to the address of the request that reads them, not to that of the order', async () => {
    const task = await addFinishedTask({ base_url: 'http://evil.example' })
    const origin = 'http://192.0.2.1:9000'
    const link = `${origin}/v1/videos/${task.task_id}/content?`
    const { data } = await (await call(`${origin}${GENERATIONS}/${task.task_id}`)).json()
    expect([data.result_url, ...data.outputs].map((url: string) => url.startsWith(link))).toEqual([true, true])
    const list = await (await call(`${origin}${GENERATIONS}?status=SUCCESS`)).text()
    expect(list).toContain(link)
    const canceled = await (await call(`${origin}${GENERATIONS}/${task.task_id}/cancel`, { json: {} })).json()
    expect(canceled.data.result_url).toStartWith(link)
  })

  test('to the configured address, also for earlier tasks', async () => {
    expect(await baseOf({ base_url: 'https://video.example.com/' }, FORWARDED)).toBe('https://video.example.com')
    const task = await addFinishedTask()
    gateway.settings.base_url = 'https://moved.example.com/'
    const { data } = await (await call(`${GENERATIONS}/${task.task_id}`)).json()
    gateway.settings.base_url = undefined
    expect(data.result_url).toStartWith(`https://moved.example.com/v1/videos/${task.task_id}/content?`)
  })
})

/** A file that is not there. */
const NOWHERE = [{ key: 'nowhere', content_type: 'video/mp4' }]

describe('the file', () => {
  const linkTo = ({ task_id }: Task, index = 0) =>
    gateway.outputs.link({ base_url: 'http://gatehouse.test', path: '/v1/videos', task_id, index })
  const content = ({ task_id }: Task, query = '') => `/v1/videos/${task_id}/content${query}`
  const errorOf = async (answer: Response) => {
    const { code, fail_code, message } = await answer.json()
    return { status: answer.status, code, fail_code, message }
  }

  test('is returned to the token of its task, with an etag to revalidate', async () => {
    const task = await addFinishedTask()
    const answer = await call(content(task))
    expect([answer.status, await answer.text()]).toEqual([200, BYTES])
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': String(BYTES.length),
      'cache-control': 'private, no-cache',
      'accept-ranges': 'bytes',
      'content-disposition': `inline; filename="${task.task_id}.mp4"`,
      'content-security-policy':
        "sandbox allow-same-origin; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
      'x-content-type-options': 'nosniff',
      etag: '"v1"',
    })
  })

  test('is returned to the holder of a valid link', async () => {
    const answer = await call(linkTo(await addFinishedTask()), { token: '' })
    expect([answer.status, await answer.text()]).toEqual([200, BYTES])
    expect(answer.headers.get('cache-control')).toBe(`private, max-age=${24 * 3600}`)
  })

  test('is not cached by a client for longer than the gateway retains it', async () => {
    const answer = await call(linkTo(await addFinishedTask({ outputs_expire_at: NOW + 60 })), { token: '' })
    expect(answer.headers.get('cache-control')).toBe('private, max-age=60')
  })

  test('is returned in ranges', async () => {
    const task = await addFinishedTask()
    const part = await call(content(task), { headers: { range: 'bytes=4-9' } })
    expect([part.status, await part.text()]).toEqual([206, BYTES.slice(4, 10)])
    const none = await call(content(task), { headers: { range: 'bytes=99-' } })
    expect(none.headers.get('content-range')).toBe(`bytes */${BYTES.length}`)
    expect(await errorOf(none)).toMatchObject({ status: 416, code: 'range_not_satisfiable' })
    expect((await call(content(task), { headers: { 'if-none-match': '"v1"' } })).status).toBe(304)
  })

  test('has its length returned by HEAD without being read', async () => {
    const body = () => {
      throw new Error('read')
    }
    const answer = await call(content(await addFinishedTask({}, { body })), { method: 'HEAD' })
    expect([answer.status, answer.body, answer.headers.get('content-length')]).toEqual([
      200,
      null,
      String(BYTES.length),
    ])
  })

  test('is rejected for an expired or changed link', async () => {
    const task = await addFinishedTask()
    const other = await addFinishedTask()
    const link = linkTo(task)
    const refused = { status: 403, code: 'link_expired' }
    for (const changed of [
      link.replace(/signature=(.)/, (_, first) => `signature=${first === 'A' ? 'B' : 'A'}`),
      link.replace(/expires=\d/, 'expires=9'),
      link.replace('?', '?index=1&'),
      link.replace(task.task_id, other.task_id),
      link.replace(/expires=\d+&/, ''),
    ]) {
      expect(await errorOf(await call(changed, { token: '' }))).toMatchObject(refused)
    }
    gateway.clock.advance(25 * 3_600_000)
    expect(await errorOf(await call(link, { token: '' }))).toMatchObject({
      ...refused,
      message: expect.stringContaining('has expired'),
    })
    expect((await call(link)).status).toBe(200)
    expect((await call(link, { token: 'two' })).status).toBe(404)
    gateway.clock.advance(-25 * 3_600_000)
    expect((await call(content(task), { token: '' })).status).toBe(401)
  })

  test('is missing before the end and after a failure', async () => {
    expect(await errorOf(await call(content(await addTask({ status: 'QUEUED', progress: 20 }))))).toMatchObject({
      status: 404,
      code: 'output_not_found',
      fail_code: '',
      message: 'The video is not ready: the task is QUEUED, 20%.',
    })
    expect(await errorOf(await call(content(await addTask(FAILURE))))).toMatchObject({
      status: 404,
      code: 'output_not_found',
      fail_code: 'generation_failed',
    })
  })

  test('that has expired is reported with the time', async () => {
    const gone = { status: 404, code: 'output_not_found', fail_code: 'output_expired' }
    const task = await addTask({ ...SUCCESS, outputs: [], outputs_expire_at: NOW - 60 })
    expect(await errorOf(await call(content(task)))).toMatchObject({
      ...gone,
      message: expect.stringContaining('2025-12-31T23:59:00.000Z'),
    })
    const removed = await addTask({ ...SUCCESS, outputs: NOWHERE, outputs_expire_at: NOW })
    expect(await errorOf(await call(content(removed)))).toMatchObject(gone)
  })

  test('that is missing before it expires is reported as missing', async () => {
    const missing = { status: 404, code: 'output_not_found', fail_code: '' }
    const lost = await addTask({ ...SUCCESS, outputs: NOWHERE, outputs_expire_at: NOW + 1 })
    expect(await errorOf(await call(content(lost)))).toMatchObject({
      ...missing,
      message:
        'The file of this task is missing where the gateway stores files, which would have kept it until ' +
        '2026-01-01T00:00:01.000Z: something else has deleted or moved it. Ask the operator to restore it, or submit a new task.',
    })
    const kept = await addTask({ ...SUCCESS, outputs: NOWHERE, outputs_expire_at: null })
    expect(await errorOf(await call(content(kept)))).toMatchObject({
      ...missing,
      message: expect.stringContaining('stores files: something else'),
    })
  })

  test('is selected by its index', async () => {
    const [first, second] = [await addFinishedTask(), await addFinishedTask({}, { content_type: 'video/webm' })]
    const outputs = [...first.outputs, ...second.outputs]
    const task = await addFinishedTask({ outputs })
    const webm = await call(content(task, '?index=1'))
    expect(webm.headers.get('content-disposition')).toBe(`inline; filename="${task.task_id}-1.webm"`)
    expect((await call(linkTo(task, 1), { token: '' })).headers.get('content-type')).toBe('video/webm')
    for (const index of ['2', '999', '1000', '99999999999999999999']) {
      expect(await errorOf(await call(content(task, `?index=${index}`)))).toMatchObject({
        status: 404,
        code: 'output_not_found',
        message: expect.stringContaining('"index" goes from 0 to 1'),
      })
    }
    for (const index of ['-1', 'a', '', '1.0']) {
      expect(await errorOf(await call(content(task, `?index=${index}`)))).toMatchObject({ status: 400 })
    }
  })

  test('that stays at the provider is a redirect', async () => {
    const url = 'https://files.acme.test/a.mp4'
    const task = await addTask({ ...SUCCESS, outputs: [{ url, content_type: 'video/mp4' }] })
    const answer = await call(content(task))
    expect([answer.status, answer.headers.get('location'), answer.headers.get('cache-control')]).toEqual([
      302,
      url,
      'no-store',
    ])
  })

  test('has no other variants', async () => {
    const task = await addFinishedTask()
    expect((await call(content(task, '?variant=video'))).status).toBe(200)
    for (const variant of ['thumbnail', 'spritesheet', '']) {
      expect(await errorOf(await call(content(task, `?variant=${variant}`)))).toMatchObject({
        status: 400,
        code: 'invalid_value',
      })
    }
  })
})

test('the log contains no prompt, no signature and no provider URL', () => {
  const logged = gateway.logged()
  expect(logged).toContain('"path":"/v1/video/generations"')
  for (const secret of ['a boat', 'signature', 'files.acme.test']) expect(logged).not.toContain(secret)
})
