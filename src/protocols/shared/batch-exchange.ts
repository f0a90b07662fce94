/** Takes the place of a provider's HTTP for lines of batches that the vendor executes: collects their requests, and reads their results. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'

export type BatchTarget = { provider: string; key: string | null; model: string }

/** One object for each call of a line. */
export type BatchExchange = {
  /** Of its entry in the ledger: the same, however often its result is read. */
  readonly entry_id: string
  /** What the vendor has answered. Absent: the request is collected. */
  readonly result?: BatchTarget & { status: number; body: string }
  /** The request is not collected: what it may use and cost is estimated. Amounts in nano-units; null: the price is not known. */
  readonly estimates?: true
  estimated?: { input_tokens: number; output_tokens: number; lowest: number | null; highest: number | null }
  /** The request, once it was collected. */
  collected?: BatchTarget & { url: string; body: string }
  /** Whether the result was read: an error is then that of the vendor, and not of the gateway before it. */
  is_read?: true
  /** Releases what budgets hold for a collected line. */
  release?(): void
}

type LineCall = {
  path: string
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer>
  signal: AbortSignal
  caller: Caller
  /** Set where a vendor executes the line. */
  exchange?: BatchExchange
}
export type LineResponse = { status: number; headers: Pick<Headers, 'get'>; text: string }

/** Handles a line like a request of its path. */
export type CallRoute = (call: LineCall) => Promise<LineResponse>

const storage = new AsyncLocalStorage<{ exchange: BatchExchange; target: BatchTarget } | undefined>()
/** Calls within an exchange: where there are none, requests to providers do not ask for one. */
export let openExchanges = 0

/** Requests to the target within this work are not sent. */
export async function withExchange<T>(
  exchange: BatchExchange,
  target: BatchTarget,
  work: () => Promise<T>,
): Promise<T> {
  openExchanges++
  try {
    return await storage.run({ exchange, target }, work)
  } finally {
    openExchanges--
  }
}

/** Requests within this work are sent, also where it is part of an exchange. */
export const withoutExchange = <T>(work: () => T): T => (openExchanges === 0 ? work() : storage.run(undefined, work))

/** The response to a request that is not sent. Throws where it was collected. Undefined: it is to be sent, as nearly always. */
export function exchanged({ url, body }: { url: string; body?: unknown }): Response | undefined {
  const current = openExchanges === 0 ? undefined : storage.getStore()
  if (!current) return undefined
  const { exchange, target } = current
  const { result } = exchange
  if (result) {
    exchange.is_read = true
    return new Response(result.body, { status: result.status, headers: { 'content-type': 'application/json' } })
  }
  if (exchange.collected || typeof body !== 'string') throw NOT_COLLECTED
  exchange.collected = { ...target, url, body }
  throw COLLECTED
}

export const COLLECTED = new GatewayError('internal_error', 'The request was collected for a batch of its vendor.')
const NOT_COLLECTED = new GatewayError(
  'unsupported_value',
  'A batch of the vendor takes one JSON request for each line.',
)
