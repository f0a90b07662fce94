/** The contract of a vendor's batches: an order of many lines, which is created once, polled, and whose results are read. */
import type { BatchOrder } from '../../spec/batch-order.ts'
import type { Json } from '../../spec/task.ts'

/** An order that may have been created. */
type SoughtOrder = Pick<BatchOrder, 'mark'> & {
  /** What was uploaded for it; undefined: it was created by an installation of which only a backup is left. */
  uploaded?: Json
  /** Undefined: that one may have put other lines into it. */
  lines?: number
  /** Unix seconds: a batch that was created later is none of that one. */
  until?: number
}

/**
 * What the vendor says of an order that was created. `problem`: why it has executed none of its lines. `is_full`: for want of
 * room, so that it may be created again; `find` passes over this one.
 */
export type BatchState = { is: 'running' } | { is: 'ended'; problem?: string; is_full?: true }

/** What has become of a line; `status` and `body` as of one call. */
export type VendorResult = { id: string } & (
  | { is: 'answered'; status: number; body: string }
  | { is: 'not executed'; why: 'canceled' | 'expired' | 'errored'; message: string }
)

export type BatchLine = { id: string; path: string; body: string }
/** The stored lines of an order, as JSONL in the form of `line`. */
export type OrderLines = () => Promise<ReadableStream<Uint8Array>>

/** All methods throw GatewayError; one with `detail.accepted: 'no'` says of `create` that no order was created. */
export type BatchProvider = {
  /** The path of an order for requests to this URL; undefined: they cannot be lines. */
  pathOf(url: string): string | undefined
  most: { lines: number; bytes: number }
  line(line: BatchLine): string
  /** What `create` needs of the vendor. After a crash it is done again, which costs nothing. */
  upload(order: BatchOrder, lines: OrderLines, signal: AbortSignal): Promise<Json>
  /** Creates the order; the result is its id at the vendor. */
  create(order: BatchOrder, uploaded: Json, lines: OrderLines, signal: AbortSignal): Promise<string>
  /**
   * Looks for the order after a crash or a restore, by what was uploaded or by its mark; `since`: unix seconds before it was
   * sent. `unsure`: one that may be it does not show enough yet. `hidden`: none ever does. `absent`: none of the list is it.
   */
  find(order: SoughtOrder, since: number, signal: AbortSignal): Promise<{ id: string } | 'absent' | 'unsure' | 'hidden'>
  state(id: string, signal: AbortSignal): Promise<BatchState>
  cancel(id: string, signal: AbortSignal): Promise<void>
  /** In any order. Lines of an ended order that are missing were not executed. `lines`: as they were stored, for a simulated vendor. */
  results(id: string, signal: AbortSignal, lines: OrderLines): AsyncGenerator<VendorResult>
}
