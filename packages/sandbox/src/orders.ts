/** Orders to the sandbox: each is really rendered, in a process beside, and goes wrong when its prompt says so. */
import { dirname, join } from 'node:path'
import { type Clock, pause, systemClock } from '../../../src/kit/clock.ts'
import type { OrderCall, OrderProvider, SimulatedErrors, TaskProgress } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import type { Json } from '../../../src/spec/task.ts'
import type { Job, Jobs } from './jobs.ts'
import { isQuick, type Ordered, type ReadOrder } from './order-directives.ts'
import { streamFile } from './temporary-files.ts'

/** A file of a finished order: where it lies beside the first one. */
type MadeFile = { name: string; content_type: string }

type SandboxOrdersParts<Order, Operation> = {
  clock: Clock
  errors: SimulatedErrors
  /** What is ordered, in a sentence: `video`. */
  thing: string
  jobs: Jobs<Operation>
  /** Throws `upstream_invalid_request` with the field at fault. */
  readOrder(call: OrderCall<Order>): ReadOrder<Operation>
  /** Throws `bad_upstream_response` for what the sandbox did not write. */
  readOperation(value: unknown): Operation
  filesOf(operation: Operation): MadeFile[]
}

/** A quick one is done in less than a second, on a busy machine in a few: one question waits for it and is enough. */
const PATIENCE_MILLISECONDS = 20_000
/** Waiting ones move up when one is done, which takes seconds. */
const RETRY_SECONDS = 5

export function createSandboxOrders<Order, Operation extends Ordered>(
  parts: SandboxOrdersParts<Order, Operation>,
): OrderProvider<Order> {
  const { clock, errors, thing, jobs, readOperation } = parts

  function order(call: OrderCall<Order>): Operation {
    const read = readOrRefuse(() => parts.readOrder(call))
    refuseAsTold(read, call.model, errors)
    const isNew = !jobs.has(read.operation.id)
    const job = jobs.take(read.operation)
    if (!job) throw busy(thing)
    if (isNew && read.lose) {
      throw new GatewayError('upstream_cut', 'The connection was lost after the order, as "@sandbox lose" asked it to.')
    }
    return job.operation
  }

  async function status(operation: Operation, signal: AbortSignal): Promise<TaskProgress> {
    const job = jobs.take(operation)
    if (!job) return { status: 'QUEUED', progress: 0, retry_after_seconds: RETRY_SECONDS }
    job.questions++
    answerAsTold(job)
    if (job.state === 'canceled') return CANCELED
    const { hang, queue_ms = 0, render_ms = 0 } = operation.course
    const passed = clock.now() - operation.ordered_ms
    if (passed < queue_ms) return { status: 'QUEUED', progress: 0 }
    if (hang) return { status: 'IN_PROGRESS', progress: 1 }
    const share = render_ms > 0 ? (passed - queue_ms) / render_ms : 1
    if (share < 1)
      return { status: 'IN_PROGRESS', progress: percent(Math.min(share, isQuick(operation) ? 1 : job.share)) }
    if (isQuick(operation)) await patiently(job.settled, signal)
    return outcomeOf(job, parts)
  }

  /** Whether its end has been, or would be, told. */
  function isOver({ state, operation: { ordered_ms, course } }: Job<Operation>): boolean {
    const { queue_ms = 0, render_ms = 0 } = course
    return (state === 'done' || state === 'failed') && clock.now() - ordered_ms >= queue_ms + render_ms
  }

  /** Ends with the work, with the patience, or with the signal. */
  async function patiently(work: Promise<void>, signal: AbortSignal): Promise<void> {
    const leaving = new AbortController()
    const enough = pause(systemClock, PATIENCE_MILLISECONDS, AbortSignal.any([signal, leaving.signal]))
    try {
      await Promise.race([work, enough])
    } finally {
      leaving.abort()
      enough.catch(() => {})
    }
    signal.throwIfAborted()
  }

  return {
    resubmit: 'safe',
    async start(call, signal) {
      signal.throwIfAborted()
      return { operation: order(call) as unknown as Json }
    },
    async status(operation, signal) {
      signal.throwIfAborted()
      return status(readOperation(operation), signal)
    },
    async cancel(operation) {
      const job = jobs.take(readOperation(operation))
      if (!job) throw busy(thing)
      if (isOver(job)) {
        throw new GatewayError('upstream_invalid_request', 'The sandbox has finished it already.')
      }
      jobs.cancel(job)
    },
  }
}

const CANCELED: TaskProgress = { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'It was canceled.' }

/** 100 is for what is done. */
const percent = (share: number) => Math.min(99, Math.floor(share * 100))

type Told<Operation> = { thing: string; filesOf(operation: Operation): MadeFile[] }

function outcomeOf<Operation extends Ordered>(job: Job<Operation>, { thing, filesOf }: Told<Operation>): TaskProgress {
  const { fail, no_output } = job.operation.course
  if (job.state === 'waiting') return { status: 'QUEUED', progress: 0 }
  if (job.state === 'running') return { status: 'IN_PROGRESS', progress: percent(job.share) }
  if (job.state === 'canceled') return CANCELED
  if (job.state === 'failed' || job.path === undefined) {
    // The machine's own words quote its paths, which are nobody's business.
    const why = job.reason.replace(/'[^']*'/g, '(path)').slice(0, 200)
    const fail_reason = `The sandbox could not render the ${thing}: ${why}.`
    return { status: 'FAILURE', fail_code: 'generation_failed', fail_reason }
  }
  if (fail) {
    const fail_reason = `The simulated vendor could not make the ${thing}, as "@sandbox fail" asked it to.`
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

/** The first questions go wrong: so many are refused, then so many are answered by what cannot be read. */
function answerAsTold({ questions, operation }: Job<Ordered>): void {
  const { limit = 0, garbage = 0, retry_after = 1 } = operation.course
  if (questions <= limit) {
    throw new GatewayError('rate_limit_exceeded', 'The sandbox was asked too often, as "@sandbox limit" asked it to.', {
      retry_after,
      upstream_status: 429,
    })
  }
  if (questions <= limit + garbage) {
    throw new GatewayError(
      'bad_upstream_response',
      'The sandbox\'s answer was unreadable, as "@sandbox garbage" asked.',
    )
  }
}

function refuseAsTold({ status, retry_after }: ReadOrder<unknown>, model: string, errors: SimulatedErrors): void {
  if (status === undefined) return
  const told = 'The simulated vendor refused the order, as "@sandbox status" asked it to.'
  const { code, message, detail } = errors.fromResponse({ model, status, retry_after, message: told })
  throw new GatewayError(code, message, { ...detail, ...errors.acceptance(status) })
}

function busy(thing: string): GatewayError {
  const detail = { retry_after: RETRY_SECONDS, upstream_status: 503, accepted: 'no' } as const
  return new GatewayError('server_is_overloaded', `The sandbox has too many ${thing}s waiting.`, detail)
}

/** What is refused while it is read was certainly not taken. */
function readOrRefuse<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof GatewayError ? notTaken(error) : error
  }
}

const notTaken = (error: GatewayError): GatewayError =>
  new GatewayError(error.code, error.message, { ...error.detail, accepted: 'no' })
