/** Accepts an order: checks everything, then makes one durable write. No provider is called. */
import type { StorageQuotas } from '../../accounts/token-quotas.ts'
import type { Call, CallOptions } from '../../calls/call.ts'
import type { Family } from '../../calls/family.ts'
import { textAt } from '../../calls/guards/content.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import { eligibleTargets, noneEligible } from '../../calls/routing/conditions.ts'
import { noneAvailable } from '../../calls/routing/outcome.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { canonicalJson } from '../../kit/json.ts'
import { jsonSize } from '../../kit/json-size.ts'
import { randomAlphanumerics, sha256 } from '../../kit/secret.ts'
import type { CatalogueModel, Chosen } from '../../models/catalogue.ts'
import { assertOrder } from '../../providers/allowed/allowed.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json, JsonObject, Task } from '../../spec/task.ts'

import type { NewTask, TaskStore } from '../../store/store.ts'
import { writeAtTime } from '../../store/store-clock.ts'
import { callbackOf } from './callback.ts'
import type { CrashHook } from './crash-points.ts'
import { blankTask } from './lifecycle.ts'
import { type FamilyRequest, kindOf } from './order-kinds.ts'
import { orderFacts } from './steps/order-target.ts'
import { estimateTask } from './task-charge.ts'
import { taskTrace } from './task-traces.ts'

export type Order = FamilyRequest & {
  call: Call
  /** `scheme://host` by which the client reached the gateway. */
  base_url: string
  idempotency_key?: string
}

/** `chosen`: the requested model and the one that serves it; absent for a replayed task. */
export type Submitted = { task: Task; replayed: boolean; chosen?: Chosen }

type SubmitParts = {
  store: { tasks: TaskStore }
  pipeline: Pipeline
  quotas: Pick<StorageQuotas, 'tasks' | 'keys'>
  settings(): { deadline_minutes: number; callback_origins?: readonly string[] }
  clock: Clock
  crashHook: CrashHook
}

/** How long a client may repeat a request with the same key. */
const KEY_SECONDS = 86_400

export async function submit(parts: SubmitParts, order: Order): Promise<Submitted> {
  const idempotency = idempotencyFor(order, unixSeconds(parts.clock))
  const earlier = idempotency && (await findReplayed(parts, order, idempotency))
  if (earlier) return { task: earlier, replayed: true }
  const { answer, model, requested } = await parts.pipeline.run(acceptOrder(parts), order.call, {
    ...order,
    idempotency,
  })
  return { ...answer, chosen: { model, requested } }
}

type AcceptedWork = { row: NewTask; model: CatalogueModel }

type AcceptedInput = Order & { idempotency: Idempotency | undefined }

/** The pipeline family of submissions: `execute` is one durable write. The worker calls the provider. */
const acceptOrder = (
  parts: SubmitParts,
): Family<AcceptedInput, AcceptedWork, Omit<Submitted, 'chosen'>, undefined> => ({
  endpoint: ({ family }) => family,
  modelOf: ({ request }) => request.model,
  fit(model, order, call) {
    for (const { provider } of model.targets) assertOrder(order.request, provider, call.caller)
    const kind = kindOf(order.family)
    const limited = kind.applyLimits(model, order.request)
    const callback = callbackOf(order.request, parts.settings())
    const { inputs, request } = splitMedia(limited, kind.media)
    const { family, base_url, idempotency } = order
    const task = newTask(parts, { family, call, base_url, model: model.id, request })
    const { timeout_ms = Number.POSITIVE_INFINITY } = call.options ?? {}
    const deadline_at = Math.min(task.deadline_at, task.submit_time + Math.ceil(timeout_ms / 1000))
    const moves = parts.clock.moves?.()
    const row: NewTask = { task: { ...task, deadline_at, call_options: storedOptions(call.options) }, moves }
    if (inputs) row.inputs = inputs
    if (callback) row.callback = callback
    if (idempotency) row.idempotency = idempotency
    return { row, model }
  },
  meter: () => undefined,
  estimate: ({ row }, model) => estimateTask(row.task, model),
  guarded: {
    input({ row }) {
      const request = { ...row.task.request }
      row.task = { ...row.task, request }
      return [...textAt(request, 'prompt'), ...textAt(request, 'negative_prompt')]
    },
  },
  texts: ({ row: { task } }) =>
    [task.request.prompt, task.request.negative_prompt].flatMap((text) =>
      typeof text === 'string' && text !== '' ? [text] : [],
    ),
  policy: 'until_accepted',
  async execute({ row, model }, { call }) {
    const { family, call_options } = row.task
    const facts = () => orderFacts(row.inputs)
    const now = () => unixSeconds(parts.clock)
    const { targets, excluded } = eligibleTargets(model.targets, {
      family,
      tags: call_options?.tags,
      project_id: call.caller.project_id,
      facts,
      now,
    })
    if (targets.length === 0) throw excluded.length > 0 ? noneEligible(excluded) : noneAvailable()
    parts.crashHook('submit: before the row')
    const holds = call.record?.holds ?? []
    const budgets = holds.flatMap((hold) => hold.forTask?.() ?? [])
    const limits = call.limits?.tasks() ?? []
    // Of its admission: with this time it is charged in the windows of the budgets that hold it.
    const submit_time = Math.floor((call.record?.admitted_ms ?? row.task.submit_time * 1000) / 1000)
    const added = await writeAtTime(parts.clock, ({ now_ms, moves }) => {
      const moved_ms = moves === row.moves ? 0 : now_ms - (row.task.due_ms ?? now_ms)
      const task = { ...row.task, ...movedBy(row.task, moved_ms), submit_time }
      return addWithin(parts, { ...row, task, budgets, limits, moves })
    })
    if (added.outcome === 'added') for (const hold of holds) hold.moved?.()
    parts.crashHook('submit: after the row')
    if (added.outcome === 'conflict') {
      throw new GatewayError(
        'idempotency_key_reused',
        'This Idempotency-Key was used for another request within the last 24 hours. Use a new key for a new request.',
      )
    }
    call.task_id = added.task.task_id
    return { task: added.task, replayed: added.outcome === 'replayed' }
  },
})

/** The clock was set since the task was prepared. */
const movedBy = ({ deadline_at, due_ms }: Task, ms: number) => ({
  deadline_at: deadline_at + Math.round(ms / 1000),
  due_ms: due_ms === null ? null : due_ms + ms,
})

const ONE_KEY = { rows: 1, bytes: 0 }

/** Throws `storage_quota_exceeded`. A replayed task counts too, until the amount is read again. */
function addWithin({ store, quotas }: SubmitParts, row: NewTask) {
  const { token_id, request } = row.task
  const add = () => store.tasks.add(row)
  const addWithKey = row.idempotency ? () => quotas.keys.keep(token_id, ONE_KEY, add) : add
  return quotas.tasks.keep(token_id, { rows: 1, bytes: jsonSize(request) + jsonSize(row.inputs) }, addWithKey)
}

/** What the worker heeds; the rest is about the submission. */
function storedOptions({ tags = [], no_fallback }: CallOptions = {}): Task['call_options'] {
  if (tags.length === 0 && !no_fallback) return null
  return { ...(tags.length === 0 ? {} : { tags: [...tags] }), ...(no_fallback && { no_fallback }) }
}

type Idempotency = NonNullable<NewTask['idempotency']>

/** A repeated request gets its first task, whatever has become of the model since. */
async function findReplayed(
  { store, clock }: SubmitParts,
  { call: { caller } }: Order,
  { key, body_hash }: Idempotency,
) {
  const earlier = await store.tasks.findByKey(caller.token_id, key, unixSeconds(clock))
  return earlier?.body_hash === body_hash ? earlier.task : undefined
}

type TaskSource = Pick<Order, 'family' | 'base_url'> & {
  call: Pick<Call, 'caller' | 'end_user' | 'trace'>
  model: string
  request: JsonObject
}

/** A task that no step has changed yet. */
export function newTask(
  { clock, settings }: Pick<SubmitParts, 'clock' | 'settings'>,
  { call: { caller, end_user, trace }, ...rest }: TaskSource,
): Task {
  const now = unixSeconds(clock)
  const task_id = `task_${randomAlphanumerics(32)}`
  return blankTask({
    task_id,
    trace: taskTrace(trace, task_id),
    ...rest,
    token_id: caller.token_id,
    project_id: caller.project_id ?? null,
    end_user: end_user ?? null,
    submit_time: now,
    deadline_at: now + Math.ceil(settings().deadline_minutes * 60),
    due_ms: clock.now(),
  })
}

/** Media may be megabytes: they are stored apart from the row that every read of the task loads. */
function splitMedia(order: object, media: readonly string[]): { inputs?: JsonObject; request: JsonObject } {
  const fields = Object.entries(order).filter(([, value]) => value !== undefined) as [string, Json][]
  const inputs = Object.fromEntries(fields.filter(([name]) => media.includes(name)))
  const request = Object.fromEntries(fields.filter(([name]) => !media.includes(name)))
  return Object.keys(inputs).length === 0 ? { request } : { inputs, request }
}

/** Two bodies are the same if they have the same members, whatever their order and white space. */
function idempotencyFor({ request, family, idempotency_key: key }: Order, now: number): Idempotency | undefined {
  if (key === undefined) return undefined
  return { key, body_hash: sha256(`${family}\n${canonicalJson(request)}`), expires_at: now + KEY_SECONDS }
}
