/** Sends one JSON request to a text API and returns its JSON response; throws the gateway's errors for anything else. */
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { holdsError } from '../../protocols/shared/upstream.ts'
import { type ProviderSettings, withFieldRules } from '../settings.ts'
import { createUpstream, type UpstreamParts } from './upstream.ts'

export type PostParts = UpstreamParts & { settings: Pick<ProviderSettings, 'fields'> }

type JsonRequest = { path: string; model: string; body: JsonRecord; request_id: string; signal: AbortSignal }

/** 2,048 vectors of 3,072 numbers take some 130 megabytes as JSON. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024

export function createPost(parts: PostParts) {
  const { fields } = parts.settings
  const upstream = createUpstream(parts)

  return {
    notUnderstood: (what: string) => upstream.notUnderstood(`answered with ${what}`),
    /** Returns the parsed body: an object, or a bare list. Throws GatewayError. */
    async send({ path, model, body, request_id, signal }: JsonRequest): Promise<unknown> {
      const sent = { path, body: JSON.stringify(withFieldRules(body, fields)), call: { request_id, model } }
      const response = await upstream.request(sent, signal)
      const payload = parseJson(await response.text(MAX_RESPONSE_BYTES))
      if (isRecord(payload) && holdsError(payload)) throw upstream.faultsOf(model, response).inAnswer(payload)
      if (typeof payload === 'object' && payload !== null) return payload
      throw upstream.notUnderstood('answered with something that is not JSON', response.status)
    },
  }
}
