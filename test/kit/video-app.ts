/** The task routes for videos over a store in memory: tasks in any state, files from a map, no vendor. */
import { createRouter } from '../../src/calls/routing/router.ts'
import { blankTask } from '../../src/families/tasks/lifecycle.ts'
import { taskRoutes } from '../../src/families/tasks/routes/table.ts'
import { createTasks } from '../../src/families/tasks/tasks.ts'
import { createApp } from '../../src/http/app.ts'
import { presentedSecret } from '../../src/http/request-parts.ts'
import { createLog } from '../../src/kit/log.ts'
import { randomAlphanumerics } from '../../src/kit/secret.ts'
import { catalogueModel, createCatalogue } from '../../src/models/catalogue.ts'
import { createAccessLog, createRequests } from '../../src/observe/requests/requests.ts'
import { createLinks } from '../../src/outputs/links.ts'
import type { Outputs, StoredFile } from '../../src/outputs/outputs.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { GatewayError } from '../../src/spec/error.ts'
import type { Task } from '../../src/spec/task.ts'
import { openStore } from '../../src/store/open-store.ts'
import { manualClock } from './clock.ts'
import { configOf } from './gateway.ts'
import { testPipeline } from './pipeline.ts'
import { NO_QUOTA } from './quota.ts'
import { callerOf } from './task-engine.ts'

/** 2026-01-01, the time of the clock. */
export const NOW = Date.UTC(2026, 0, 1) / 1000
export const BYTES = 'not really a video'

const MODELS = {
  'acme/film': { video: { duration: { values: [4, 8] }, n: 4 } },
  'acme/old': { deprecated_at: NOW - 60, retired_at: NOW + 86_400, replaced_by: 'acme/film' },
  'acme/gone': { retired_at: NOW - 60, replaced_by: 'acme/film', when_retired: 'redirect' },
  'acme/talk': { families: ['chatcompat'] },
} as const

type CallOptions = {
  method?: string
  token?: string
  headers?: Record<string, string>
  json?: unknown
  form?: FormData
  signal?: AbortSignal
}

export async function createVideoApp(server: Parameters<typeof configOf>[0] = {}) {
  const clock = manualClock()
  const config = configOf(server)
  let lines = ''
  const write = (text: string) => {
    lines += text
  }
  const log = createLog({ clock, level: 'debug', pretty: false, write })
  const store = await openStore({ url: 'sqlite::memory:' })
  const provider = { id: 'acme', kind: 'test', chat: {}, video: {} } as Provider
  const catalogue = createCatalogue({ clock })
  catalogue.replace(
    Object.entries(MODELS).map(([id, { ...row }]) => {
      const families = ['video-generation', 'chatcompat-video'] as const
      const more = { targets: [{ provider, model: id }], created: 0, when_retired: 'refuse' as const }
      return catalogueModel({ id, config: { families: [...families], ...row } as never, ...more })
    }),
  )
  const files = new Map<string, StoredFile>()
  const never = () => Promise.reject(new Error('not in this test'))
  const outputs: Outputs = {
    copy: never,
    keep: never,
    remove: never,
    open: async (key) => files.get(key),
    ...createLinks({ clock, secret: 's', link_hours: () => 24 }),
  }
  const { pipeline } = testPipeline({ catalogue, clock })
  const tasks = createTasks({
    store,
    quotas: { tasks: NO_QUOTA, keys: NO_QUOTA },
    pipeline,
    catalogue,
    outputs,
    providerOf: () => ({ provider, key: null }),
    router: createRouter({ clock, log }),
    providerSettings: () => undefined,
    inputs: { checkInputs: never },
    settings: () => ({ ...config.tasks, keep_days: 30 }),
    clock,
    log,
  })
  const settings = config.server
  const requests = createRequests({ recorders: [createAccessLog({ log })], clock, log })
  const app = createApp({
    routes: taskRoutes({ tasks, pipeline, outputs, withFiles: (body) => body, settings, clock }),
    authenticate(_, { request }) {
      const secret = presentedSecret(request)
      if (secret === undefined) throw new GatewayError('invalid_api_key', 'No token.')
      return callerOf(`tok_${secret}`)
    },
    settings,
    clock,
    log,
    onFinished: requests.requestFinished,
  })

  /** Calls with the token `one` by default; `token: ''` sends none. */
  function call(path: string, { token = 'one', json, form, headers, ...rest }: CallOptions = {}): Promise<Response> {
    const init: RequestInit = {
      method: json === undefined && form === undefined ? 'GET' : 'POST',
      headers: {
        ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...rest,
    }
    if (json !== undefined) init.body = JSON.stringify(json)
    if (form !== undefined) init.body = form
    const url = path.startsWith('http') ? path : `http://gatehouse.test${path}`
    return app.fetch(new Request(url, init), { address: '127.0.0.1' })
  }

  return {
    clock,
    settings,
    store,
    outputs,
    call,
    logged() {
      requests.flush()
      log.flush()
      return lines
    },
    /** Adds a task in the given state. */
    async addTask(more: Partial<Task> = {}): Promise<Task> {
      const task = taskOf(more)
      await store.tasks.add({ task })
      return task
    },
    /** Adds a finished task with a file. */
    async addFinishedTask(more: Partial<Task> = {}, file: Partial<StoredFile> = {}): Promise<Task> {
      const key = randomAlphanumerics(12)
      files.set(key, {
        content_type: 'video/mp4',
        bytes: BYTES.length,
        version: 'v1',
        body: (range) => new Blob([range ? BYTES.slice(range.first, range.last + 1) : BYTES]).stream(),
        ...file,
      })
      const outputs = [{ key, content_type: 'video/mp4', bytes: BYTES.length }]
      return this.addTask({ ...SUCCESS, outputs, ...more })
    },
    async close() {
      await app.close({ deadline_ms: 0 })
      await tasks.stop({ deadline_ms: 0 })
      await store.close()
    },
  }
}

export const SUCCESS: Partial<Task> = {
  status: 'SUCCESS',
  progress: 100,
  start_time: NOW - 8,
  finish_time: NOW - 2,
  outputs_expire_at: NOW + 86_400 * 30,
  due_ms: null,
}
export const FAILURE: Partial<Task> = {
  status: 'FAILURE',
  progress: 100,
  finish_time: NOW - 2,
  fail_code: 'generation_failed',
  fail_reason: 'The upstream could not make it.',
  due_ms: null,
}

const taskOf = (more: Partial<Task>): Task =>
  blankTask({
    task_id: `task_${randomAlphanumerics(32)}`,
    token_id: 'tok_one',
    family: 'video-generation',
    model: 'acme/film',
    submit_time: NOW - 10,
    request: { model: 'acme/film', prompt: 'a boat', duration: 4, size: '720p', aspect_ratio: '9:16', n: 1 },
    base_url: 'http://gatehouse.test',
    deadline_at: NOW + 3_600,
    due_ms: NOW * 1000,
    ...more,
  })
