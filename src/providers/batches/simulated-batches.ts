/**
 * Simulates batches of the sandbox as those of a vendor: its calls can be lines of an order, which ends some seconds after its creation. It
 * keeps no state but what was cancelled: the id of an order tells when it was created, and each line is executed when its result
 * is read.
 */
import type { Clock } from '../../kit/clock.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import { exchanged, openExchanges } from '../../protocols/shared/batch-exchange.ts'
import { GatewayError } from '../../spec/error.ts'
import type { SimulatedErrors } from '../provider.ts'
import { pathBelow } from './batch-client.ts'
import type { BatchProvider, VendorResult } from './batch-provider.ts'

type Call = { model: string }
type Execute = (call: never, signal: AbortSignal) => Promise<unknown>

/** It names no host: nothing is sent. */
const BASE_URL = 'sandbox:'
const RUN_MILLISECONDS = 10_000
/** Of a line: one that takes longer, such as one that hangs, expires. */
const LINE_MILLISECONDS = 1_000

/** `load`: registers the paths, which a restarted gateway has not used yet. */
type Parts = { clock: Clock; errors: SimulatedErrors; load(): void }

export function createSimulatedBatches({ clock, errors, load }: Parts) {
  const executed = new Map<string, Execute>()
  const cancelled = new Set<string>()
  const hasEnded = (id: string) => clock.now() >= Number(id.slice(id.lastIndexOf('-') + 1)) + RUN_MILLISECONDS

  /** Makes calls of this path executable as lines. */
  function asLines<C extends Call, R>(
    path: string,
    execute: (call: C, signal: AbortSignal) => Promise<R>,
  ): (call: C, signal: AbortSignal) => Promise<R> {
    executed.set(path, execute as Execute)
    return async (call, signal) => {
      const response =
        openExchanges === 0 ? undefined : exchanged({ url: `${BASE_URL}${path}`, body: JSON.stringify(call) })
      if (!response) return execute(call, signal)
      const value = parseJson(await response.text())
      if (response.ok) return value as R
      const message = isRecord(value) ? String(value.message) : ''
      throw errors.fromResponse({ model: call.model, status: response.status, retry_after: undefined, message })
    }
  }

  async function resultOf(line: string, signal: AbortSignal): Promise<VendorResult> {
    load()
    const { id, path, call } = JSON.parse(line) as { id: string; path: string; call: Call }
    const late = new AbortController()
    const stop = clock.after(LINE_MILLISECONDS, () => late.abort())
    try {
      const answer = await executed.get(path)?.(call as never, AbortSignal.any([signal, late.signal]))
      return { id, is: 'answered', status: 200, body: JSON.stringify(answer) }
    } catch (thrown) {
      signal.throwIfAborted()
      if (late.signal.aborted) return { id, is: 'not executed', why: 'expired', message: 'The simulated line hung.' }
      if (!(thrown instanceof GatewayError)) throw thrown
      const { upstream_status: status = thrown.status } = thrown.detail
      return { id, is: 'answered', status, body: JSON.stringify({ message: thrown.message }) }
    } finally {
      stop()
    }
  }

  const batches: BatchProvider = {
    pathOf: pathBelow(BASE_URL, /^\/(chat|embeddings|moderations)$/),
    most: { lines: 50_000, bytes: 200_000_000 },
    line: ({ id, path, body }) => `{"id":${JSON.stringify(id)},"path":${JSON.stringify(path)},"call":${body}}`,
    upload: async () => null,
    create: async ({ mark }) => `sandbox-${mark}-${clock.now()}`,
    // One that may exist is as good as one that does: nothing has been executed yet.
    find: async ({ mark }) => ({ id: `sandbox-${mark}-${clock.now()}` }),
    state: async (id) => ({ is: cancelled.has(id) || hasEnded(id) ? 'ended' : 'running' }),
    async cancel(id) {
      if (!hasEnded(id)) cancelled.add(id)
    },
    async *results(id, signal, lines) {
      if (cancelled.delete(id)) return
      const decoder = new TextDecoder()
      let rest = ''
      for await (const piece of await lines()) {
        const found = (rest + decoder.decode(piece, { stream: true })).split('\n')
        rest = found.pop() ?? ''
        for (const line of found) yield await resultOf(line, signal)
      }
    },
  }
  return { batches, asLines }
}
