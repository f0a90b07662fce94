/** A client's video request into the house's words, refused with the place and the rule (specification 2.5). */
import { Compile } from 'typebox/compile'
import { diagnose, foundText } from '../kit/diagnose.ts'
import { refusalOf } from '../models/refusal.ts'
import { GatewayError } from '../spec/error.ts'
import { VideoRequest } from '../spec/video-request.ts'

const check = Compile(VideoRequest)
const KNOWN = new Set(Object.keys(VideoRequest.properties))

/** `null` is absent; unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
export function parseVideoRequest(body: unknown): VideoRequest {
  const fields = knownFields(body, KNOWN)
  if (!check.Check(fields)) throw refusalOf(diagnose(VideoRequest, fields))
  return fields
}

/** The members of a body that are known and not `null`. Throws invalid_type for what is no object. */
export function knownFields(body: unknown, known: ReadonlySet<string>): Record<string, unknown> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  }
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null && known.has(name)))
}
