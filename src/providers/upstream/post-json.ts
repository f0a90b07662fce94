/** One JSON question to a vendor of texts and its JSON answer; everything else is thrown, on our sheet. */
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { holdsError } from '../../protocols/provider-error.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { ProviderSettings } from '../settings.ts'
import { createUpstream, type UpstreamParts } from './upstream.ts'

export type PostParts = UpstreamParts & { settings: Pick<ProviderSettings, 'fields'> }

type JsonRequest = { path: string; model: string; body: JsonRecord; request_id: string; signal: AbortSignal }

type Post = {
  /** The answer as it is: an object, or a bare list. Throws GatewayError. */
  send(question: JsonRequest): Promise<unknown>
  notUnderstood(what: string): GatewayError
}

/** 2,048 vectors of 3,072 numbers, written out, take some 130 megabytes. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024

export function createPost(parts: PostParts): Post {
  const { fields } = parts.settings
  const upstream = createUpstream(parts)

  /** The operator's word on fields, as for chat. */
  function written(body: JsonRecord): string {
    const out: JsonRecord = {}
    for (const [name, value] of Object.entries(body)) {
      if (value !== undefined && !fields.drop.includes(name)) out[fields.rename[name] ?? name] = value
    }
    return JSON.stringify(out)
  }

  return {
    notUnderstood: (what) => upstream.notUnderstood(`answered with ${what}`),
    async send({ path, model, body, request_id, signal }) {
      const answer = await upstream.ask({ path, body: written(body), call: { request_id, model } }, signal)
      const payload = parseJson(await answer.text(MAX_ANSWER_BYTES))
      if (isRecord(payload) && holdsError(payload)) throw upstream.faultsOf(model, answer).inAnswer(payload)
      if (typeof payload === 'object' && payload !== null) return payload
      throw upstream.notUnderstood('answered with something that is no JSON', answer.status)
    },
  }
}
