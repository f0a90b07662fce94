/** Orders of videos and 3D models: another process renders each of them, and they fail when a directive requests it. */
import { dirname, join } from 'node:path'
import { type Clock, pause, systemClock } from '../../../src/kit/clock.ts'
import type { OrderCall, OrderProvider, SimulatedErrors, TaskProgress } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import type { Json } from '../../../src/spec/task.ts'
import type { Job, Jobs } from './jobs.ts'
import { isQuick, type ParsedOrder, type StoredOrder } from './order-directives.ts'
import { streamFile } from './temporary-files.ts'

/** A file of a finished order, in the same directory as the first one. */
type OutputFile = { name: string; content_type: string }

type SandboxOrdersParts<Order, Operation> = {
  clock: Clock
  errors: SimulatedErrors
  /** What the messages call the product: `video`. */
  thing: string
  jobs: Jobs<Operation>
  /** Throws `upstream_invalid_request` with the field at fault. */
  parseOrder(call: OrderCall<Order>): ParsedOrder<Operation>
  /** Throws `bad_upstream_response` for an operation that the sandbox did not create. */
  parseOperation(value: unknown): Operation
  filesOf(operation: Operation): OutputFile[]
}

/** A quick order takes less than a second, or a few on a busy machine: one poll waits for its end. */
const MAX_WAIT_MILLISECONDS = 20_000
/** A waiting order starts when another one ends, which takes seconds. */
const RETRY_SECONDS = 5

export function createSandboxOrders<Order, Operation extends StoredOrder>(
  parts: SandboxOrdersParts<Order, Operation>,
): OrderProvider<Order> {
  const { clock, errors, thing, jobs, parseOperation } = parts

  function submit(call: OrderCall<Order>): Operation {
    const read = rejectedAsNotAccepted(() => parts.parseOrder(call))
    throwRequestedStatus(read, call.model, errors)
    const isNew = !jobs.has(read.operation.id)
    const job = jobs.getOrStart(read.operation)
    if (!job) throw overloaded(thing)
    if (isNew && read.lose) {
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
    return outcomeOf(job, parts)
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
    resubmit: 'safe',
    async start(call, signal) {
      signal.throwIfAborted()
      return { operation: submit(call) as unknown as Json }
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

type OutcomeParts<Operation> = { thing: string; filesOf(operation: Operation): OutputFile[] }

function outcomeOf<Operation extends StoredOrder>(
  job: Job<Operation>,
  { thing, filesOf }: OutcomeParts<Operation>,
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

function throwRequestedStatus(
  { status, retry_after }: ParsedOrder<unknown>,
  model: string,
  errors: SimulatedErrors,
): void {
  if (status === undefined) return
  const requested = 'The simulated provider rejected the order, as "@sandbox status" requested.'
  const { code, message, detail } = errors.fromResponse({ model, status, retry_after, message: requested })
  throw new GatewayError(code, message, { ...detail, ...errors.acceptance(status) })
}

function overloaded(thing: string): GatewayError {
  const detail = { retry_after: RETRY_SECONDS, upstream_status: 503, accepted: 'no' } as const
  return new GatewayError('server_is_overloaded', `The sandbox has too many ${thing}s waiting.`, detail)
}

/** An order that is rejected while it is read was certainly not accepted. */
function rejectedAsNotAccepted<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof GatewayError ? asNotAccepted(error) : error
  }
}

const asNotAccepted = (error: GatewayError): GatewayError =>
  new GatewayError(error.code, error.message, { ...error.detail, accepted: 'no' })
