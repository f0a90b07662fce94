/** One JSON question to an OpenAI-shaped vendor and its JSON answer; everything else is thrown, on our sheet. */
import type { Clock } from '../../kit/clock.ts'
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { errorInAnswer, holdsError, refusalToError } from '../refusal.ts'
import type { ChatcompatSettings } from '../settings.ts'
import type { Transport } from '../transport.ts'

export type PostParts = {
  id: string
  settings: Pick<ChatcompatSettings, 'base_url' | 'headers' | 'timeouts' | 'secrets' | 'fields'>
  transport: Transport
  clock: Clock
  log: Log
}

type Question = { path: string; model: string; body: JsonRecord; request_id: string; signal: AbortSignal }

export type Post = {
  /** The answer as it is: an object, or a bare list. Throws GatewayError. */
  ask(question: Question): Promise<unknown>
  notUnderstood(what: string): GatewayError
}

/** 2,048 vectors of 3,072 numbers, written out, take some 130 megabytes. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024

export function createPost({ id, settings, transport, clock, log }: PostParts): Post {
  const { base_url, headers, timeouts, secrets, fields } = settings

  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `The upstream "${id}" answered with ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  function failed(error: GatewayError, model: string): GatewayError {
    if (error.status >= 500) {
      log.warn('upstream refused', {
        provider: id,
        model,
        upstream_status: error.detail.upstream_status,
        error: error.code,
      })
    }
    return error
  }

  /** The operator's word on fields, as for chat. */
  function written(body: JsonRecord): string {
    const out: JsonRecord = {}
    for (const [name, value] of Object.entries(body)) {
      if (value !== undefined && !fields.drop.includes(name)) out[fields.rename[name] ?? name] = value
    }
    return JSON.stringify(out)
  }

  return {
    notUnderstood,
    async ask({ path, model, body, request_id, signal }) {
      const answer = await transport.send({
        provider: id,
        url: `${base_url}${path}`,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'user-agent': 'gatehouse',
          'x-request-id': request_id,
          ...headers,
        },
        body: written(body),
        signal,
        timeouts,
        stream: false,
      })
      const { status } = answer
      if (status < 200 || status >= 300) {
        const payload = parseJson(await answer.excerpt())
        const refusal = { provider: id, model, status, headers: answer.headers, payload, secrets, clock }
        throw failed(refusalToError(refusal), model)
      }
      const payload = parseJson(await answer.text(MAX_ANSWER_BYTES))
      if (isRecord(payload) && holdsError(payload)) {
        throw failed(errorInAnswer({ provider: id, model, payload, secrets, clock }), model)
      }
      if (typeof payload === 'object' && payload !== null) return payload
      throw notUnderstood('something that is no JSON', status)
    },
  }
}
