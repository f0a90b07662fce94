/** Providers that return outputs at once, orders in two parts, and families other than videos. */
import { describe, expect, test } from 'bun:test'
import type { CrashPoint } from '../src/families/tasks/crash-points.ts'
import type { RemoteOutput, TaskProgress } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Json, Task } from '../src/spec/task.ts'
import type { Store } from '../src/store/store.ts'
import { testCall } from './kit/pipeline.ts'
import {
  CALLER,
  type EngineOptions,
  MODEL,
  memoryFiles,
  respondInTurn,
  type ScriptedVendor,
  scriptedVendor,
  success,
  type TaskEngine,
  taskEngine,
} from './kit/task-engine.ts'

const broken = () => new GatewayError('upstream_cut', 'The connection broke.')
const refusal = (code: 'rate_limit_exceeded' | 'upstream_invalid_request' | 'insufficient_quota') =>
  new GatewayError(code, 'The vendor does not want to.', { accepted: 'no' })
const endOf = ({ status, fail_code }: Task) => `${status} ${fail_code}`.trim()

const bytes = (text: string, content_type = 'image/png'): RemoteOutput => ({
  content_type,
  open: async () => new Blob([text]).stream(),
})
const link = (url: string): RemoteOutput => ({ url, content_type: 'image/png' })

/**
 * A gateway whose process dies the nth time that it reaches a crash point, and another on the same store that continues
 * when the leases of the first have expired.
 */
async function diesAt(
  point: CrashPoint,
  nth: number,
  options: EngineOptions,
): Promise<{ next: TaskEngine; id: string }> {
  let passed = 0
  let is_dead = false
  const gateway = await taskEngine({
    ...options,
    crashHook(passing) {
      if (is_dead || (passing === point && ++passed === nth)) {
        is_dead = true
        throw new Error('the process has ended')
      }
    },
    wrapStore: (store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        claim: (claim) => (is_dead ? Promise.resolve([]) : store.tasks.claim(claim)),
        save: (task, change) => (is_dead ? new Promise(() => {}) : store.tasks.save(task, change)),
      },
    }),
  })
  const id = await gateway.submit()
  await gateway.advance(20)
  if (!is_dead) throw new Error(`"${point}" was not come by ${nth} times`)
  const { vendors, files } = options
  const next = await taskEngine({
    ...(vendors && { vendors }),
    ...(files && { files }),
    store: gateway.store,
    clock: gateway.clock,
  })
  await next.run(200)
  return { next, id }
}

describe('a provider that returns its outputs at once', () => {
  const atOnce = (made: RemoteOutput[], more: Partial<ScriptedVendor> = {}) =>
    scriptedVendor({ start: async () => ({ operation: { id: 'now' }, outputs: made }), ...more })

  test('is not polled: bytes are stored, links are copied, in their order', async () => {
    const acme = atOnce([bytes('one'), link('https://files.acme.test/two.png'), bytes('three', 'image/webp')])
    const files = memoryFiles()
    await using gateway = await taskEngine({ vendors: { acme }, files })
    const id = await gateway.submit()
    await gateway.run(2)
    const task = await gateway.read(id)
    expect(endOf(task)).toBe('SUCCESS')
    expect(acme.polls).toBe(0)
    expect(task.outputs.map(({ key }) => key)).toEqual([`${id}/0.png`, `${id}/1.png`, `${id}/2.webp`])
    expect(task.outputs.map(({ content_type }) => content_type)).toEqual(['image/png', 'video/mp4', 'image/webp'])
    expect(files.copied.map(({ source }) => source.url)).toEqual(['https://files.acme.test/two.png'])
    expect(await gateway.store.tasks.inputs(id)).toBeUndefined()
    expect(task.start_time).toBeGreaterThan(0)
  })

  test('without any output fails the task', async () => {
    await using gateway = await taskEngine({ vendors: { acme: atOnce([]) } })
    const id = await gateway.submit()
    await gateway.run(2)
    expect(endOf(await gateway.read(id))).toBe('FAILURE no_output')
  })

  test('with passthrough outputs: its links are the outputs, its bytes are stored', async () => {
    const acme = atOnce([link('https://files.acme.test/one.png'), bytes('two')])
    const files = memoryFiles()
    const providers = { acme: { outputs: 'passthrough' as const } }
    await using gateway = await taskEngine({ vendors: { acme }, files, providers })
    const id = await gateway.submit()
    await gateway.run(2)
    const task = await gateway.read(id)
    expect(task.outputs).toEqual([
      { url: 'https://files.acme.test/one.png', content_type: 'image/png' },
      { key: `${id}/1.png`, content_type: 'image/png', bytes: 3 },
    ])
    expect(files.copied).toEqual([])
  })

  test.each([
    ['send: before the operation', 'unsafe', 'FAILURE submit_outcome_unknown', 1],
    ['send: before the operation', 'safe', 'SUCCESS', 2],
    // Accepted, and stored as such; the bytes were in the process that has died.
    ['send: after the operation', 'unsafe', 'FAILURE output_expired', 1],
    ['send: after the operation', 'safe', 'SUCCESS', 2],
    ['copy: before the first byte', 'unsafe', 'FAILURE output_expired', 1],
    ['copy: in the middle', 'safe', 'SUCCESS', 2],
    // Stored: nothing can be lost any more.
    ['copy: after the last byte', 'unsafe', 'SUCCESS', 1],
    ['made: before the write', 'unsafe', 'SUCCESS', 1],
    ['made: after the write', 'unsafe', 'SUCCESS', 1],
    ['end: before the write', 'unsafe', 'SUCCESS', 1],
  ] as const)('whose process dies at "%s" (%s): %s, after %d orders', async (point, resubmit, end, calls) => {
    const acme = atOnce([bytes('one')], { resubmit })
    const { next, id } = await diesAt(point, 1, { vendors: { acme }, files: memoryFiles() })
    await using gateway = next
    expect(endOf(await gateway.read(id))).toBe(end)
    expect(acme.calls).toHaveLength(calls)
    expect(new Set(acme.calls.map(({ idempotency_key }) => idempotency_key)).size).toBe(1)
  })

  test('and is unsafe to repeat is not asked again for a file that was stored before the process died', async () => {
    const acme = atOnce([bytes('one'), bytes('two')])
    const { next, id } = await diesAt('copy: before the first byte', 2, { vendors: { acme }, files: memoryFiles() })
    await using gateway = next
    expect(endOf(await gateway.read(id))).toBe('FAILURE output_expired')
    // The stored file belongs to no task any more and is removed.
    const gone = await gateway.store.tasks.outputsToRemove(Math.floor(gateway.clock.now() / 1000), 9)
    expect(gone.flatMap(({ outputs }) => outputs.map(({ key }) => key))).toEqual([`${id}/0.png`])
  })

  test('and is safe to repeat returns all files in order, each once', async () => {
    const acme = atOnce([bytes('one'), bytes('two')], { resubmit: 'safe' })
    const { next, id } = await diesAt('copy: before the first byte', 2, { vendors: { acme }, files: memoryFiles() })
    await using gateway = next
    const { status, outputs } = await gateway.read(id)
    expect([status, outputs.map(({ key }) => key)]).toEqual(['SUCCESS', [`${id}/0.png`, `${id}/1.png`]])
    expect(acme.calls).toHaveLength(2)
  })

  test('has its bytes stored again after a short failure of the file store', async () => {
    const files = memoryFiles()
    const { keep } = files
    let tries = 0
    files.keep = async (...file) => {
      if (++tries < 3) throw new Error('the bucket is away')
      return keep(...file)
    }
    await using gateway = await taskEngine({ vendors: { acme: atOnce([bytes('one')]) }, files })
    const id = await gateway.submit()
    await gateway.advance(20)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
    expect(tries).toBe(3)
  })

  test('and is safe to repeat is asked again, rarely, until the deadline, if the file store stays unavailable', async () => {
    const files = memoryFiles()
    files.keep = () => Promise.reject(new Error('the bucket is gone'))
    const acme = atOnce([bytes('one')], { resubmit: 'safe' })
    await using gateway = await taskEngine({ vendors: { acme }, files, settings: { deadline_minutes: 5 } })
    const id = await gateway.submit()
    await gateway.advance(400)
    expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code: 'timeout' })
    expect(acme.calls.length).toBeWithin(4, 10)
  })

  test('and is unsafe to repeat has its bytes held for hours until the file store returns, and no other process claims the task', async () => {
    const files = memoryFiles()
    const { keep } = files
    let is_away = true
    files.keep = (...file) => (is_away ? Promise.reject(new Error('the bucket is away')) : keep(...file))
    const acme = atOnce([bytes('one')])
    await using gateway = await taskEngine({ vendors: { acme }, files })
    const id = await gateway.submit()
    await gateway.advance(5_400)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS', progress: 99 })
    is_away = false
    await gateway.advance(20)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
    expect(acme.calls).toHaveLength(1)
  })

  test('fails with a fault of the gateway at the copying deadline if the file store never returns', async () => {
    const files = memoryFiles()
    files.keep = () => Promise.reject(new Error('the bucket is gone'))
    const acme = atOnce([bytes('one')])
    await using gateway = await taskEngine({ vendors: { acme }, files, settings: { copy_deadline_minutes: 30 } })
    const id = await gateway.submit()
    await gateway.advance(1_790)
    expect(await gateway.read(id)).toMatchObject({ status: 'IN_PROGRESS' })
    await gateway.advance(40)
    expect(endOf(await gateway.read(id))).toBe('FAILURE internal_error')
    expect(acme.calls).toHaveLength(1)
  })

  test.each([
    ['refused', new GatewayError('output_refused', 'Too large.'), 'output_expired'],
    ['broken', new GatewayError('bad_upstream_response', 'Half.', { fail_code: 'output_invalid' }), 'output_invalid'],
  ])('fails the task at once if a file is %s', async (_, error, fail_code) => {
    const files = memoryFiles()
    files.keep = () => Promise.reject(error)
    await using gateway = await taskEngine({ vendors: { acme: atOnce([bytes('one')]) }, files })
    const id = await gateway.submit()
    await gateway.run(5)
    expect(await gateway.read(id)).toMatchObject({
      status: 'FAILURE',
      fail_code,
      fail_reason: error.message,
    })
  })
})

describe('an order in two parts', () => {
  const proceedable: TaskProgress = { status: 'PROCEED' }
  /** The first part finishes at once, then the second. */
  const inTwo = (script: Partial<ScriptedVendor> = {}) =>
    scriptedVendor({
      start: async () => ({ operation: { part: 1 } }),
      status: async (operation) => ((operation as { part: number }).part === 1 ? proceedable : success()),
      proceed: async () => ({ operation: { part: 2 } }),
      ...script,
    })

  test('continues from the result of the first part, with a key of its own', async () => {
    const keys: string[] = []
    const acme = inTwo({
      proceed: async (_, { idempotency_key }) => {
        keys.push(idempotency_key)
        return { operation: { part: 2 } }
      },
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(15)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
    expect(acme.proceeded).toEqual([{ part: 1 }])
    expect(keys[0]).toStartWith(id)
    expect(keys[0]).not.toBe(acme.calls[0]?.idempotency_key)
  })

  test('is sent again from the same result after a temporary refusal', async () => {
    const acme = inTwo({
      proceed: respondInTurn<{ operation: Json }>(refusal('rate_limit_exceeded'), { operation: { part: 2 } }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(25)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
    expect(acme.proceeded).toEqual([{ part: 1 }, { part: 1 }])
    expect(acme.calls).toHaveLength(1)
  })

  test('ends after repeated temporary refusals, and no other target is called', async () => {
    const acme = inTwo({ proceed: respondInTurn<never>(refusal('rate_limit_exceeded')) })
    const zenith = scriptedVendor()
    await using gateway = await taskEngine({ vendors: { acme, zenith } })
    const id = await gateway.submit()
    await gateway.run(600)
    expect(endOf(await gateway.read(id))).toBe('FAILURE upstream_rate_limited')
    expect([acme.proceeded.length, zenith.calls.length]).toEqual([8, 0])
  })

  test.each([
    ['upstream_invalid_request', 'invalid_input'],
    ['insufficient_quota', 'insufficient_quota'],
  ] as const)('ends when it is refused permanently with %s as %s', async (code, fail_code) => {
    const acme = inTwo({ proceed: respondInTurn<never>(refusal(code)) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'FAILURE', fail_code })
    expect(acme.proceeded).toHaveLength(1)
  })

  test.each([
    ['unsafe', 'FAILURE submit_outcome_unknown', 1],
    ['safe', 'SUCCESS', 2],
  ] as const)('after a lost connection (%s): %s, sent %d times', async (resubmit, end, times) => {
    const acme = inTwo({ resubmit, proceed: respondInTurn<{ operation: Json }>(broken(), { operation: { part: 2 } }) })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(25)
    expect(endOf(await gateway.read(id))).toBe(end)
    expect(acme.proceeded).toHaveLength(times)
  })

  test.each([
    ['proceed: before the mark', 1, 'unsafe', 'SUCCESS', 1],
    ['proceed: after the mark', 1, 'unsafe', 'FAILURE submit_outcome_unknown', 0],
    ['proceed: after the mark', 1, 'safe', 'SUCCESS', 1],
    ['send: before the operation', 2, 'unsafe', 'FAILURE submit_outcome_unknown', 1],
    ['send: before the operation', 2, 'safe', 'SUCCESS', 2],
    ['send: after the operation', 2, 'unsafe', 'SUCCESS', 1],
  ] as const)(
    'whose process dies at "%s" (time %d, %s): %s, sent %d times',
    async (point, nth, resubmit, end, times) => {
      const acme = inTwo({ resubmit })
      const { next, id } = await diesAt(point, nth, { vendors: { acme } })
      await using gateway = next
      expect(endOf(await gateway.read(id))).toBe(end)
      expect(acme.proceeded).toHaveLength(times)
      expect(acme.calls).toHaveLength(1)
    },
  )

  test('has the full order timeout for the second part, however long the poll before it took', async () => {
    const later = <T>(seconds: number, answer: T) =>
      new Promise<T>((resolve) => void gateway.clock.after(seconds * 1000, () => resolve(answer)))
    const acme = inTwo({
      status: async (operation) => ((operation as { part: number }).part === 1 ? later(55, proceedable) : success()),
      proceed: async () => later(55, { operation: { part: 2 } }),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.advance(150)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
    expect(acme.proceeded).toHaveLength(1)
  })

  test('can be canceled between its parts, and then the second is never sent', async () => {
    const told: Json[] = []
    const acme = inTwo({
      status: async () => ({ status: 'IN_PROGRESS' }),
      cancel: async (operation) => void told.push(operation),
    })
    await using gateway = await taskEngine({ vendors: { acme } })
    const id = await gateway.submit()
    await gateway.run(6)
    await gateway.tasks.cancel(id, CALLER)
    await gateway.run(6)
    expect(endOf(await gateway.read(id))).toBe('FAILURE canceled')
    expect([told, acme.proceeded]).toEqual([[{ part: 1 }], []])
  })
})

describe('a task of another family', () => {
  test('uses its own part of the provider, its own limits and its own file extension', async () => {
    const acme = scriptedVendor()
    const files = memoryFiles()
    await using gateway = await taskEngine({ vendors: { acme }, files })
    const id = await gateway.submit({ images: ['aGk='] }, { family: '3d-generation' })
    expect(await gateway.store.tasks.inputs(id)).toEqual({ images: ['aGk='] })
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({
      status: 'SUCCESS',
      family: '3d-generation',
      request: { format: 'glb' },
    })
    expect(acme.calls[0]?.request).toMatchObject({ format: 'glb', images: ['aGk='] } as never)
    expect(files.copied.map(({ key }) => key)).toEqual([`${id}/0.glb`])
  })

  test('is visible only in its own API', async () => {
    await using gateway = await taskEngine()
    const video = await gateway.submit()
    const solid = await gateway.submit({}, { family: '3d-generation' })
    const { tasks } = gateway
    const codeOf = (work: Promise<unknown>) =>
      work.then(
        () => 'found',
        (error: GatewayError) => error.code,
      )
    for (const families of [['video-generation', 'chatcompat-video'] as const, ['3d-generation'] as const]) {
      const [mine, other] = families.length === 2 ? [video, solid] : [solid, video]
      expect((await tasks.list(CALLER, { families, limit: 9 })).tasks.map(({ task_id }) => task_id)).toEqual([mine])
      expect(await codeOf(tasks.find(mine, CALLER, families))).toBe('found')
      expect(await tasks.findAny(other, families)).toBeUndefined()
      expect((await tasks.findAny(mine, families))?.task_id).toBe(mine)
      for (const work of [tasks.find, tasks.cancel, tasks.remove]) {
        expect(await codeOf(work(other, CALLER, families))).toBe('task_not_exist')
      }
    }
  })

  test.each([
    [329, 'SUCCESS'],
    [331, 'FAILURE submit_outcome_unknown'],
  ])('may have a longer order timeout: one of images that takes %d seconds is %s', async (seconds, end) => {
    let made = 0
    const make = async () => {
      made++
      await new Promise<void>((resolve) => void gateway.clock.after(seconds * 1000, resolve))
      return { images: [{ base64: 'aGk=' }] }
    }
    await using gateway = await taskEngine()
    gateway.providers.set('acme', {
      id: 'acme',
      kind: 'scripted',
      images: { operations: ['generate'], generate: make },
    })
    gateway.setTargets(['acme'])
    const request = { model: MODEL, prompt: 'a cat', operation: 'generate' as const }
    const order = { request, family: 'image-generation' as const, call: testCall(CALLER), base_url: 'http://gate.test' }
    const id = (await gateway.tasks.submit(order)).task.task_id
    // Another process, which would claim it as soon as its lease has expired.
    await using other = await taskEngine({ store: gateway.store, clock: gateway.clock })
    other.providers.set('acme', { id: 'acme', kind: 'scripted', images: { operations: ['generate'], generate: make } })
    await gateway.advance(350)
    expect(endOf(await gateway.read(id))).toBe(end)
    expect(made).toBe(1)
  })

  test('is rejected for a model of another family', async () => {
    await using gateway = await taskEngine()
    gateway.providers.set('flat', { id: 'flat', kind: 'scripted', video: scriptedVendor() })
    gateway.setTargets(['flat'])
    const error = await gateway.submit({}, { family: '3d-generation' }).catch((reason: GatewayError) => reason.code)
    expect(error).toBe('unsupported_endpoint')
  })
})
