/** Orders of videos and 3D models: another process renders each of them, and they fail when a directive requests it. */
import { dirname, join } from 'node:path'
import type Type from 'typebox'
import { checker } from '../../../src/kit/checker.ts'
import { pause, systemClock } from '../../../src/kit/clock.ts'
import { sha256 } from '../../../src/kit/secret.ts'
import type { OrderCall, OrderProvider, SimulatedErrors, TaskProgress } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import type { Json } from '../../../src/spec/task.ts'
import { invalidRequest } from './invalid-request.ts'
import { createJobs, type Job, type JobsParts } from './jobs.ts'
import { isQuick, parseOrderPrompt, type StoredOrder } from './order-directives.ts'
import { createTemporaryFiles, streamFile, type TemporaryFiles } from './temporary-files.ts'
import { type SimulationParts, withAcceptance } from './text-directives.ts'

/** A file of a finished order, in the same directory as the first one. */
type OutputFile = { name: string; content_type: string }

export type SandboxOrdersParts = SimulationParts &
  Pick<JobsParts<never>, 'renderWorkers' | 'max_waiting'> & {
    /** Default: a new directory among the temporary files of the machine. */
    files?: TemporaryFiles
  }

/** What the orders of one product have of their own. */
type Product<Order, Operation extends StoredOrder> = Pick<JobsParts<Operation>, 'workOf'> & {
  /** What the messages call it: `video`. */
  thing: string
  /** Ids of operations begin with it. */
  prefix: string
  /** Of the stored operations: `STORED_ORDER`, and what `parse` returns. */
  schema: Type.TSchema
  /** The longest text that is legible on it. */
  max_text: number
  unsupported: readonly (keyof Order & string)[]
  /** Throws `upstream_invalid_request` with the field at fault. */
  parse(call: OrderCall<Order>): Omit<Operation, keyof StoredOrder>
  filesOf(operation: Operation): OutputFile[]
}

/** A quick order takes less than a second, or a few on a busy machine: one poll waits for its end. */
const MAX_WAIT_MILLISECONDS = 20_000
/** A waiting order starts when another one ends, which takes seconds. */
const RETRY_SECONDS = 5

export function createSandboxOrders<
  Order extends { prompt?: string | undefined; seed?: number | undefined },
  Operation extends StoredOrder,
>(parts: SandboxOrdersParts, product: Product<Order, Operation>): OrderProvider<Order> & { close(): Promise<void> } {
  const { clock, errors, files = createTemporaryFiles() } = parts
  const { thing } = product
  const jobs = createJobs({ ...parts, files, workOf: product.workOf })
  const stored = checker(product.schema)

  /** Throws `bad_upstream_response` for an operation that the sandbox did not create. */
  function parseOperation(value: unknown): Operation {
    if (stored.Check(value)) return value as Operation
    throw new GatewayError('bad_upstream_response', 'The sandbox does not know this operation.')
  }

  async function parseOrder(call: OrderCall<Order>) {
    const { request, model, idempotency_key, owner } = call
    for (const field of product.unsupported) {
      if (request[field] !== undefined) reject(field, `the sandbox does not support "${field}"`)
    }
    const { text, directives } = parseOrderPrompt(request.prompt ?? '')
    const { status, lose, ...course } = directives
    const order: StoredOrder = {
      id: `${product.prefix}_${sha256(idempotency_key).slice(0, 32)}`,
      text: text.slice(0, product.max_text),
      seed: sha256(JSON.stringify([model, text, request.seed ?? null])),
      ordered_ms: clock.now(),
      course,
      ...(owner === undefined ? {} : { owner }),
    }
    const operation = { ...order, ...product.parse(call) } as Operation
    if (status !== undefined) throwStatus(status, { retry_after: course.retry_after, model, errors })
    return { operation, lose }
  }

  async function submit(call: OrderCall<Order>): Promise<Operation> {
    const { operation, lose } = await withAcceptance(() => parseOrder(call), errors)
    const isNew = !jobs.has(operation.id)
    const job = jobs.getOrStart(operation)
    if (!job) throw overloaded(thing)
    if (isNew && lose) {
      throw new GatewayError('upstream_cut', 'The connection was lost after the order, as "@sandbox lose" requested.')
    }
    return job.operation
  }

  async function status(operation: Operation, signal: AbortSignal): Promise<TaskProgress> {
    const job = jobs.getOrStart(operation)
    if (!job) return { status: 'QUEUED', progress: 0, retry_after_seconds: RETRY_SECONDS }
    job.polls++
    simulatePollErrors(job)
    if (job.state === 'canceled') return CANCELED
    const { hang, queue_ms = 0, render_ms = 0 } = operation.course
    const passed = sinceOrder(operation)
    if (passed < queue_ms) return { status: 'QUEUED', progress: 0 }
    if (hang) return { status: 'IN_PROGRESS', progress: 1 }
    const share = render_ms > 0 ? (passed - queue_ms) / render_ms : 1
    if (share < 1)
      return { status: 'IN_PROGRESS', progress: percent(Math.min(share, isQuick(operation) ? 1 : job.share)) }
    if (isQuick(operation)) await waitUntilSettled(job.settled, signal)
    return outcomeOf(job, product)
  }

  /** The clock may have been set back. */
  const sinceOrder = ({ ordered_ms }: Pick<StoredOrder, 'ordered_ms'>) => Math.max(0, clock.now() - ordered_ms)

  function isOver({ state, operation: { ordered_ms, course } }: Job<Operation>): boolean {
    const { queue_ms = 0, render_ms = 0 } = course
    return (state === 'done' || state === 'failed') && sinceOrder({ ordered_ms }) >= queue_ms + render_ms
  }

  /** Returns when the job has ended or after the maximum wait; throws when the signal is aborted. */
  async function waitUntilSettled(work: Promise<void>, signal: AbortSignal): Promise<void> {
    const finished = new AbortController()
    const timeout = pause(systemClock, MAX_WAIT_MILLISECONDS, AbortSignal.any([signal, finished.signal]))
    try {
      await Promise.race([work, timeout])
    } finally {
      finished.abort()
      timeout.catch(() => {})
    }
    signal.throwIfAborted()
  }

  return {
    close: jobs.close,
    resubmit: 'safe',
    async start(call, signal) {
      signal.throwIfAborted()
      return { operation: (await submit(call)) as unknown as Json }
    },
    async status(operation, signal) {
      signal.throwIfAborted()
      return status(parseOperation(operation), signal)
    },
    async cancel(operation) {
      const job = jobs.getOrStart(parseOperation(operation))
      if (!job) throw overloaded(thing)
      if (isOver(job)) {
        throw new GatewayError('upstream_invalid_request', 'The sandbox has finished this order already.')
      }
      jobs.cancel(job)
    },
  }
}

const CANCELED: TaskProgress = { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'It was canceled.' }

/** 100 is reserved for finished orders. */
const percent = (share: number) => Math.min(99, Math.floor(share * 100))

function outcomeOf<Operation extends StoredOrder>(
  job: Job<Operation>,
  { thing, filesOf }: Pick<Product<never, Operation>, 'thing' | 'filesOf'>,
): TaskProgress {
  const { fail, no_output } = job.operation.course
  if (job.state === 'waiting') return { status: 'QUEUED', progress: 0 }
  if (job.state === 'running') return { status: 'IN_PROGRESS', progress: percent(job.share) }
  if (job.state === 'canceled') return CANCELED
  if (job.state === 'failed' || job.path === undefined) {
    // The system's messages contain paths of this machine, which clients must not see.
    const why = job.reason.replace(/'[^']*'/g, '(path)').slice(0, 200)
    const fail_reason = `The sandbox could not render the ${thing}: ${why}.`
    return { status: 'FAILURE', fail_code: 'generation_failed', fail_reason }
  }
  if (fail) {
    const fail_reason = `The simulated provider could not make the ${thing}, as "@sandbox fail" requested.`
    return { status: 'FAILURE', fail_code: fail, fail_reason }
  }
  if (no_output) return { status: 'SUCCESS', outputs: [] }
  const { path } = job
  const outputs = filesOf(job.operation).map(({ name, content_type }) => ({
    content_type,
    open: (signal: AbortSignal) => streamFile(join(dirname(path), name), signal),
  }))
  return { status: 'SUCCESS', outputs }
}

/** The first polls fail: `limit` of them with a rate limit, then `garbage` of them with an unreadable response. */
function simulatePollErrors({ polls, operation }: Job<StoredOrder>): void {
  const { limit = 0, garbage = 0, retry_after = 1 } = operation.course
  if (polls <= limit) {
    throw new GatewayError('rate_limit_exceeded', 'The sandbox was polled too often, as "@sandbox limit" requested.', {
      retry_after,
      upstream_status: 429,
    })
  }
  if (polls <= limit + garbage) {
    throw new GatewayError(
      'bad_upstream_response',
      'The sandbox\'s response was unreadable, as "@sandbox garbage" requested.',
    )
  }
}

type RequestedStatus = { retry_after: number | undefined; model: string; errors: SimulatedErrors }

function throwStatus(status: number, { errors, ...rest }: RequestedStatus): never {
  const message = 'The simulated provider rejected the order, as "@sandbox status" requested.'
  throw errors.fromResponse({ ...rest, status, message })
}

function overloaded(thing: string): GatewayError {
  const detail = { retry_after: RETRY_SECONDS, upstream_status: 503, accepted: 'no' } as const
  return new GatewayError('server_is_overloaded', `The sandbox has too many ${thing}s waiting.`, detail)
}

export function reject(param: string, why: string): never {
  throw invalidRequest(`The simulated provider rejected the order: ${why}.`, param)
}

/** The one of the values that was requested. */
export function oneOf<T extends string | number>(allowed: readonly T[], requested: string | number, param: string): T {
  const found = allowed.find((value) => value === requested)
  return found ?? reject(param, `${param} must be ${allowed.join(' or ')}`)
}
