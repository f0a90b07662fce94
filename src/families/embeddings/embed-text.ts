/** Embeds the text of a request for the semantic cache, as a call of the same caller that is limited and counted like others. */
import type { Call } from '../../calls/call.ts'
import type { EmbedText } from '../../calls/lookup.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import { runAside } from '../../calls/side-call.ts'
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
    try {
      const side = { timeout_ms, clock, what: `The model "${model}" did not embed the text` }
      const { answer } = await runAside(call, side, (own) => pipeline().run(family, own, { model, input: text }))
      return answer.embeddings[0]
    } catch (thrown) {
      const { request_id, signal } = call
      if (!signal.aborted) log.warn('text not embedded', { request_id, model, reason: reasonOf(thrown) })
      return undefined
    }
  }
}

const reasonOf = (thrown: unknown): string => (thrown instanceof GatewayError ? thrown.code : 'internal_error')
