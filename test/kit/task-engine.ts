/** The task engine in memory: the real store, a manual clock, and scripted providers and files. */
import { createRouter } from '../../src/calls/routing/router.ts'
import type { CrashHook } from '../../src/families/tasks/crash-points.ts'
import type { InputChecker, Order, ProviderSettings, TaskSettings } from '../../src/families/tasks/tasks.ts'
import { createTasks, type Tasks } from '../../src/families/tasks/tasks.ts'
import { createLog } from '../../src/kit/log.ts'
import { type CatalogueModel, catalogueModel, createCatalogue } from '../../src/models/catalogue.ts'
import type { Copied, CopySource, Outputs } from '../../src/outputs/outputs.ts'
import type { Provider, TaskProgress, ThreeDProvider, VideoCall, VideoProvider } from '../../src/providers/provider.ts'
import type { EndpointFamily } from '../../src/spec/endpoint-family.ts'
import type { Json, Task } from '../../src/spec/task.ts'
import type { Caller } from '../../src/spec/token.ts'
import type { VideoRequest } from '../../src/spec/video-request.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { type ManualClock, manualClock } from './clock.ts'
import { testCall, testPipeline } from './pipeline.ts'
import { NO_QUOTA } from './quota.ts'

export const FILE = { content_type: 'video/mp4', bytes: 24 }
export const MODEL = 'acme/film'

/** A provider that accepts every order and returns one video at the first poll, unless the test overrides it. */
export type ScriptedVendor = VideoProvider & { calls: VideoCall[]; polls: number; canceled: number; proceeded: Json[] }

export function scriptedVendor(script: Partial<VideoProvider> = {}): ScriptedVendor {
  const { cancel, proceed } = script
  const vendor: ScriptedVendor = {
    calls: [],
    polls: 0,
    canceled: 0,
    proceeded: [],
    resubmit: 'unsafe',
    ...script,
    async start(call, signal) {
      vendor.calls.push(call)
      return script.start ? script.start(call, signal) : { operation: { id: call.task_id } }
    },
    async status(operation, signal) {
      vendor.polls++
      return script.status ? script.status(operation, signal) : success()
    },
  }
  if (cancel) {
    vendor.cancel = (operation, signal) => {
      vendor.canceled++
      return cancel(operation, signal)
    }
  }
  if (proceed) {
    vendor.proceed = (operation, call, signal) => {
      vendor.proceeded.push(operation)
      return proceed(operation, call, signal)
    }
  }
  return vendor
}

export const success = (...urls: string[]): TaskProgress => ({
  status: 'SUCCESS',
  outputs: (urls.length === 0 ? ['https://files.acme.test/a.mp4'] : urls).map((url) => ({ url })),
})

/** Returns each of the results in turn, and then the last one repeatedly; an error is thrown. */
export function respondInTurn<T>(...answers: (T | Error)[]): () => Promise<Exclude<T, Error>> {
  let next = 0
  return async () => {
    const answer = answers[Math.min(next++, answers.length - 1)]
    if (answer instanceof Error) throw answer
    return answer as Exclude<T, Error>
  }
}

export type Files = Outputs & {
  copied: { key: string; source: CopySource }[]
  stored: Map<string, number>
}

type CopyScript = (key: string, source: CopySource) => Promise<Copied | undefined>

export function memoryFiles(script: { copy?: CopyScript } = {}): Files {
  const types = new Map<string, string>()
  const files: Files = {
    copied: [],
    stored: new Map(),
    async copy(key, source) {
      files.copied.push({ key, source })
      const scripted = await script.copy?.(key, source)
      if (scripted && !scripted.done) return scripted
      files.stored.set(key, FILE.bytes)
      return scripted ?? { done: true, output: { key, ...FILE } }
    },
    async keep(key, { content_type, body }) {
      const bytes = (await new Response(body).arrayBuffer()).byteLength
      files.stored.set(key, bytes)
      types.set(key, content_type)
      return { key, content_type, bytes }
    },
    async open(key) {
      const bytes = files.stored.get(key)
      if (bytes === undefined) return undefined
      const content_type = types.get(key) ?? FILE.content_type
      return { content_type, bytes, version: key, body: () => new Response(new Uint8Array(bytes)).body ?? never() }
    },
    async remove(key) {
      files.stored.delete(key)
    },
    link: ({ base_url, path, task_id, index }) => `${base_url}${path}/${task_id}/content?index=${index}`,
    verify: () => 'valid',
  }
  return files
}

const never = (): never => {
  throw new Error('no body')
}

export const callerOf = (token_id: string): Caller => ({
  token_id,
  mayUseModel: () => true,
  mayUseFamily: () => true,
})
export const CALLER = callerOf('tok_one')

export type EngineOptions = {
  /** By id, in the order of the model's targets; default: one, `acme`. */
  vendors?: Record<string, VideoProvider>
  files?: Files
  settings?: Partial<TaskSettings>
  providers?: Record<string, ProviderSettings>
  checkInputs?: InputChecker['checkInputs']
  /** The names of the keys of each provider; default: it has only one, without a name. */
  keys?: string[]
  keep_days?: number
  crashHook?: CrashHook
  alertsOf?: NonNullable<Parameters<typeof createTasks>[0]['alertsOf']>
  store?: Store
  clock?: ManualClock
  /** Wraps the store that the engine uses. */
  wrapStore?: (store: Store) => Store
}

export type TaskEngine = {
  tasks: Tasks
  store: Store
  clock: ManualClock
  files: Files
  /** The configured providers; a test may remove one. */
  providers: Map<string, Provider>
  settings: TaskSettings
  setTargets(ids: string[]): void
  submit(
    request?: Partial<VideoRequest>,
    options?: { caller?: Caller; key?: string; family?: Exclude<Order['family'], 'image-generation'> },
  ): Promise<string>
  read(task_id: string): Promise<Task>
  /** Advances time in small steps, and lets every due step finish. */
  run(seconds: number): Promise<void>
  /** The same where steps hang: gives other work time to run, without waiting for the steps to finish. */
  advance(seconds: number): Promise<void>
  logged(): string
  [Symbol.asyncDispose](): Promise<void>
}

export async function taskEngine(options: EngineOptions = {}): Promise<TaskEngine> {
  const clock = options.clock ?? manualClock()
  const store = options.store ?? (await openStore({ url: 'sqlite::memory:' }))
  const files = options.files ?? memoryFiles()
  const vendors = options.vendors ?? { acme: scriptedVendor() }
  const providers = new Map(
    Object.entries(vendors).map(([id, video]) => [
      id,
      { id, kind: 'scripted', video, threeD: video as unknown as ThreeDProvider },
    ]),
  )
  const settings = {
    deadline_minutes: 60,
    copy_deadline_minutes: 1_440,
    poll_seconds: 4,
    slow_poll_seconds: 15,
    concurrency: 32,
    keep_days: 30,
  }
  Object.assign(settings, options.settings)
  let lines = ''
  const write = (text: string) => {
    lines += text
  }
  const log = createLog({ clock, level: 'debug', pretty: false, write })
  const catalogue = createCatalogue({ clock })
  const setTargets = (ids: string[]) => catalogue.replace(ids.length === 0 ? [] : [modelRow(ids, providers, options)])
  setTargets(Object.keys(vendors))
  const tasks = createTasks({
    store: options.wrapStore?.(store) ?? store,
    quotas: { tasks: NO_QUOTA, keys: NO_QUOTA },
    pipeline: testPipeline({ catalogue, clock }).pipeline,
    catalogue,
    outputs: files,
    providerOf(id, _, key) {
      const provider = providers.get(id)
      return provider && { provider, key }
    },
    router: createRouter({ clock, log, random: () => 0 }),
    // Shorter than by default, so that a provider that never responds is given up sooner.
    providerSettings: (id) => ({ first_byte_seconds: 60, ...options.providers?.[id] }),
    inputs: { checkInputs: options.checkInputs ?? (async () => {}) },
    settings: () => settings,
    clock,
    log,
    ...(options.alertsOf && { alertsOf: options.alertsOf }),
    ...(options.crashHook && { crashHook: options.crashHook }),
  })
  tasks.start()

  const read = async (task_id: string): Promise<Task> => {
    const task = await store.tasks.find(task_id)
    if (!task) throw new Error(`no task ${task_id}`)
    return task
  }
  const pace = async (seconds: number, settle: () => Promise<void>) => {
    for (let left = seconds * 1000; left > 0; left -= PACE_MILLISECONDS) {
      clock.advance(Math.min(left, PACE_MILLISECONDS))
      await settle()
    }
  }

  return {
    tasks,
    store,
    clock,
    files,
    providers,
    settings,
    setTargets,
    async submit(request = {}, { caller = CALLER, key, family = 'video-generation' } = {}) {
      const order = { model: MODEL, prompt: 'a cat', ...request }
      const given = { request: order, family, call: testCall(caller), base_url: 'http://gate.test' }
      const { task } = await tasks.submit(key === undefined ? given : { ...given, idempotency_key: key })
      return task.task_id
    },
    read,
    run: (seconds) =>
      pace(seconds, async () => {
        await new Promise((resolve) => setImmediate(resolve)) // lets work that is not a step run
        await tasks.idle()
      }),
    advance: (seconds) => pace(seconds, settled),
    logged() {
      log.flush()
      return lines
    },
    async [Symbol.asyncDispose]() {
      await tasks.stop({ deadline_ms: 0 })
      if (!options.store) await store.close()
    },
  }
}

/** The store of a dead process: every call rejects. */
export const unless = <T extends object>(isDead: () => boolean, parts: T): T =>
  new Proxy(parts, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) =>
        isDead() ? Promise.reject(new Error('The process is dead.')) : Reflect.apply(value, target, given)
    },
  })

const PACE_MILLISECONDS = 500

/** Some turns of the event loop: more than a step needs from one of its waits to the next. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 14; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function modelRow(ids: string[], providers: Map<string, Provider>, { keep_days, keys }: EngineOptions): CatalogueModel {
  const targets = ids.flatMap((id, priority) => {
    const provider = providers.get(id)
    const target = provider && { provider, model: 'film-1', priority }
    if (!target) return []
    return keys?.map((key) => ({ ...target, key })) ?? [target]
  })
  const config = {
    families: ['video-generation', 'chatcompat-video', '3d-generation', 'image-generation'] satisfies EndpointFamily[],
    ...(keep_days !== undefined && { keep_days }),
  }
  return catalogueModel({ id: MODEL, config, targets, created: 0, when_retired: 'refuse' })
}
