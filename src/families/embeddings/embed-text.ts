/** Embeds the text of a request for the semantic cache, as a call of the same caller that is limited and counted like others. */
import type { Call } from '../../calls/call.ts'
import type { EmbedText } from '../../calls/lookup.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import { GatewayError } from '../../spec/error.ts'
import type { EmbeddingFamily } from './embeddings.ts'

type EmbedTextParts = {
  catalogue: Pick<Catalogue, 'require'>
  family: EmbeddingFamily
  /** Called later: the pipeline itself uses the result. */
  pipeline: () => Pick<Pipeline, 'run'>
  clock: Clock
  log: Log
}

export function createEmbedText({ catalogue, family, pipeline, clock, log }: EmbedTextParts): EmbedText {
  /** Checked before the call, so that a caller without the right causes no failed call. */
  function mayUse(model: string, { caller }: Call): boolean {
    try {
      return Boolean(catalogue.require(model, 'embeddings', caller))
    } catch {
      return false
    }
  }

  return async (text, { call, model, timeout_ms }) => {
    if (!mayUse(model, call)) return undefined
    const { request_id, caller, end_user, signal, options } = call
    const late = new AbortController()
    const cancel = clock.after(timeout_ms, () => {
      late.abort(new GatewayError('upstream_timeout', `The model "${model}" did not embed the text in time.`))
    })
    const own: Call = {
      request_id,
      caller,
      signal: AbortSignal.any([signal, late.signal]),
      arrived: clock.steady(),
      is_detached: true,
      trace: call.trace,
      options: { timeout_ms, ...(options?.tags ? { tags: options.tags } : {}) },
      ...(end_user === undefined ? {} : { end_user }),
    }
    try {
      const { answer } = await pipeline().run(family, own, { model, input: text })
      return answer.embeddings[0]
    } catch (thrown) {
      if (!signal.aborted) log.warn('text not embedded', { request_id, model, reason: reasonOf(thrown) })
      return undefined
    } finally {
      cancel()
    }
  }
}

const reasonOf = (thrown: unknown): string => (thrown instanceof GatewayError ? thrown.code : 'internal_error')
