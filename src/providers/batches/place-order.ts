/** Takes a stored order to its vendor: uploads it, creates it once, finds it again after a crash or a restore, and polls it to its end. */
import type { Clock } from '../../kit/clock.ts'
import type { BatchOrder, PlacedOrder } from '../../spec/batch-order.ts'
import { GatewayError } from '../../spec/error.ts'
import type { BatchProvider, OrderLines } from './batch-provider.ts'

type Placing = {
  vendor: BatchProvider
  lines: OrderLines
  /** Rejects where another process has the order. */
  save(change: Partial<Omit<PlacedOrder, keyof BatchOrder>>): Promise<void>
  /** Nothing more is sent; what was created is cancelled. */
  isOver: boolean
  /** When the backup was made, and when it was restored. */
  restored?: { backup_ms: number; at_ms: number } | undefined
  /** Whether what was backed up still has its lines. */
  hasLines(): Promise<boolean>
  /** It certainly was not created after the backup; called before that is saved. */
  onAbsent(): void
  crashHook(point: `batch: order ${'uploaded' | 'sent' | 'created' | 'polled'}`): void
  warn(event: string, why: string): void
  clock: Clock
  signal: AbortSignal
}

/** `later`: look again then. `unknown`: it may have been executed. `unsent`: it was not. `gone`: it was not, and has no lines any more. */
type Placed =
  | { is: 'later'; wait_ms: number }
  | { is: 'unknown' | 'unsent' | 'gone' }
  | { is: 'refused'; code: string; message: string }
  | { is: 'ended'; problem?: string }

const FIRST_POLL_MILLISECONDS = 15_000
const LONGEST_POLL_MILLISECONDS = 300_000
const PAUSE_MILLISECONDS = 60_000
/** After a refusal for want of room, which other orders that end make. */
const FULL_MILLISECONDS = 300_000
/** How far the clock of a vendor may differ. */
const SKEW_MILLISECONDS = 60_000
/** So long a list of a vendor may lack a batch that it has created. */
const LISTED_MILLISECONDS = 300_000

const LATER = { is: 'later', wait_ms: PAUSE_MILLISECONDS } as const

/** As far as it gets now. Throws GatewayError where the vendor fails. */
export async function placeOrder(order: PlacedOrder, placing: Placing): Promise<Placed> {
  const { vendor, lines, save, isOver, crashHook, clock, signal } = placing
  if (placing.restored && order.id === undefined && order.stage !== 'sent' && !order.is_sought) {
    const found = await seek(order, placing)
    if (found === 'later' || (found === 'unsure' && !isOver)) return LATER
    if (found !== 'known') return { is: 'unknown' }
    if (order.id === undefined && !(await placing.hasLines())) return { is: 'gone' }
  }
  if (order.stage === 'sent') {
    const since = secondsBefore(order.sent_ms ?? 0)
    const last_ms = Math.max(order.sent_ms ?? 0, placing.restored?.at_ms ?? 0)
    const found = await vendor.find({ ...order, uploaded: order.uploaded ?? null }, since, signal)
    if (typeof found === 'object') await save({ stage: 'created', id: found.id })
    else if (found !== 'absent' || clock.now() < last_ms + LISTED_MILLISECONDS) return LATER
    else await save({ stage: 'uploaded' })
  }
  if (isOver && order.stage !== 'created') return { is: 'unsent' }
  if (order.stage === 'marked' || order.stage === 'stored') {
    const uploaded = await vendor.upload(order, lines, signal)
    crashHook('batch: order uploaded')
    await save({ stage: 'uploaded', uploaded })
  }
  if (order.stage === 'uploaded') {
    const wait_ms = (order.full?.until_ms ?? 0) - clock.now()
    if (wait_ms > 0) return { is: 'later', wait_ms }
    await save({ stage: 'sent', sent_ms: clock.now() })
    crashHook('batch: order sent')
    try {
      const id = await vendor.create(order, order.uploaded ?? null, lines, signal)
      crashHook('batch: order created')
      await save({ stage: 'created', id })
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.detail.accepted !== 'no') throw thrown
      const { code, message } = thrown
      if (code !== 'server_is_overloaded') return { is: 'refused', code, message }
      // Its file, which is not ready, was never refused.
      await save({
        stage: 'uploaded',
        ...(thrown.detail.upstream_status !== undefined && fullOf(order, message, clock)),
      })
      throw thrown
    }
  }
  return poll(order, placing)
}

const fullOf = ({ full }: PlacedOrder, problem: string, clock: Clock) => ({
  full: {
    code: 'server_is_overloaded',
    message: `The provider has no room for this batch now: ${problem}`,
    since_ms: full?.since_ms ?? clock.now(),
    until_ms: clock.now() + FULL_MILLISECONDS,
  },
})

const secondsBefore = (ms: number): number => Math.floor((ms - LISTED_MILLISECONDS) / 1000)

/** Whether the installation that was backed up has created it since. */
async function seek(order: PlacedOrder, { vendor, save, restored, onAbsent, clock, signal }: Placing) {
  const { backup_ms, at_ms } = restored ?? { backup_ms: 0, at_ms: 0 }
  const sought = {
    mark: order.mark,
    until: Math.ceil((at_ms + SKEW_MILLISECONDS) / 1000),
    ...(order.stage === 'uploaded' && { uploaded: order.uploaded ?? null, lines: order.lines }),
  }
  const found = await vendor.find(sought, secondsBefore(backup_ms), signal)
  if (found === 'unsure' || found === 'hidden') return found
  if (found === 'absent' && clock.now() < at_ms + LISTED_MILLISECONDS) return 'later'
  if (found === 'absent') onAbsent()
  await save({ ...(found !== 'absent' && { stage: 'created', id: found.id, is_adopted: true }), is_sought: true })
  return 'known'
}

async function poll(order: PlacedOrder, placing: Placing): Promise<Placed> {
  const { vendor, save, isOver, crashHook, warn, clock, signal } = placing
  const { id = '', polls = 0 } = order
  if (isOver && !order.is_cancelled) {
    // It may have ended meanwhile, which its state tells.
    await vendor
      .cancel(id, signal)
      .catch((thrown: unknown) => warn('batch not cancelled at its provider', String(thrown)))
    await save({ is_cancelled: true })
  }
  const state = polls === 0 && !isOver ? { is: 'running' as const } : await vendor.state(id, signal)
  crashHook('batch: order polled')
  if (state.is === 'ended' && state.is_full && !isOver && !order.is_adopted) {
    warn('batch has no room at its provider', state.problem ?? '')
    await save({ stage: 'uploaded', id: undefined, polls: 0, ...fullOf(order, state.problem ?? '', clock) })
    return { is: 'later', wait_ms: FULL_MILLISECONDS }
  }
  if (state.is === 'ended') return state
  await save({ polls: polls + 1 })
  const wait_ms = Math.min(FIRST_POLL_MILLISECONDS * 1.5 ** Math.min(polls, 20), LONGEST_POLL_MILLISECONDS)
  return { is: 'later', wait_ms }
}
