/** The directives of requests without chat or orders: how long a response takes, and how it fails. */
import { type Clock, pause } from '../../../src/kit/clock.ts'
import type { SimulatedErrors } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { DIRECTIVES, extractDirectiveLines, readDirectives } from './directives.ts'

const { first_ms, status, retry_after, usage } = DIRECTIVES
export const TEXT_DIRECTIVES = { first_ms, status, retry_after, usage }

/** What the simulation of a provider needs. */
export type SimulationParts = { clock: Clock; errors: SimulatedErrors }

type Simulated = {
  texts: readonly string[]
  /** The field that has them. */
  param: string
  model: string
  signal: AbortSignal
}

/** A request that fails while it is read was not accepted. A requested status means what it means of any provider. */
export async function withAcceptance<T>(work: () => Promise<T>, errors: SimulatedErrors): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    const { upstream_status: status } = thrown.detail
    const acceptance = status === undefined ? { accepted: 'no' as const } : errors.acceptance(status)
    throw new GatewayError(thrown.code, thrown.message, { ...thrown.detail, ...acceptance })
  }
}

/**
 * Waits, or throws an error, as the directives in the texts request. Returns the texts without the lines of directives, and
 * whether the response has a usage. Throws `upstream_invalid_request`.
 */
export async function applyDirectives(
  { texts, param, model, signal }: Simulated,
  { clock, errors }: SimulationParts,
): Promise<{ rest: string[]; hasUsage: boolean }> {
  signal.throwIfAborted()
  const extracted = texts.map(extractDirectiveLines)
  const lines = extracted.flatMap((one) => one.lines)
  const { first_ms = 0, status, retry_after, usage } = readDirectives(lines, { rules: TEXT_DIRECTIVES, param })
  if (first_ms > 0) await pause(clock, first_ms, signal)
  if (status !== undefined) {
    const message = 'The simulated provider rejected the request, as "@sandbox status" requested.'
    throw errors.fromResponse({ model, status, retry_after, message })
  }
  return { rest: extracted.map(({ rest }) => rest), hasUsage: usage === undefined }
}
