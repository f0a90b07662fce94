/**
 * Encodes signed content of other vendors as a `thoughtSignature`, which clients send back. The field holds bytes:
 * some clients decode it and encode it again in another base64 alphabet, so the marker is inside the bytes.
 */
import { isRecord, parseJson } from '../../../kit/json.ts'
import type { Opaque, Reasoning } from '../../shared/canonical.ts'
import { opaqueOf } from '../../shared/signed-content.ts'

/**
 * The signature of a part: its own, earlier pieces of reasoning that were not shown, and on a call those that were
 * shown: some clients send a call back without the thoughts before it.
 */
type SignedContent = { own?: Opaque | undefined; before?: Reasoning[]; shown?: Reasoning[] }

const MARK = 'gatehouse:'
/** The first bytes of the marker in base64, equal in both alphabets. */
const MARK_BEGINS = 'Z2F0ZWhvdXNl'
const HOME = 'contentgen-compat'

/**
 * The value of `thoughtSignature`. Signatures of this API stay as they are; others are wrapped. Undefined if there is
 * none.
 */
export function encodeSignature({ own, before = [], shown = [] }: SignedContent): string | undefined {
  if (!own && before.length === 0 && shown.length === 0) return undefined
  if (own && before.length === 0 && isPlain(own)) return own.value
  const wrapped = shown.length === 0 ? [own ?? null, before] : [own ?? null, before, shown]
  return Buffer.from(MARK + JSON.stringify(wrapped)).toString('base64')
}

/** Whether the signature can be sent unchanged. */
export const isPlain = ({ origin, id }: Opaque): boolean => origin === HOME && id === undefined

/** The reverse of `encodeSignature`. A text that was not wrapped correctly goes to the provider, which judges it. */
export const decodeSignature = (signature: string): SignedContent =>
  unwrapped(signature) ?? { own: { origin: HOME, value: signature } }

/** Whether `encodeSignature` wrapped the text. */
export const isWrapped = (signature: string): boolean => unwrapped(signature) !== undefined

function unwrapped(signature: string): SignedContent | undefined {
  if (!signature.startsWith(MARK_BEGINS)) return undefined
  const text = Buffer.from(signature, 'base64').toString()
  if (!text.startsWith(MARK)) return undefined
  const wrapped = parseJson(text.slice(MARK.length))
  if (!Array.isArray(wrapped)) return undefined
  const [own, before, shown = []] = wrapped
  if (!Array.isArray(before) || !Array.isArray(shown)) return undefined
  const opaque = isRecord(own) ? opaqueOf(own) : undefined
  return {
    ...(opaque ? { own: opaque } : {}),
    before: before.flatMap(pieceOf),
    ...(shown.length > 0 ? { shown: shown.flatMap(pieceOf) } : {}),
  }
}

function pieceOf(value: unknown): Reasoning[] {
  if (!isRecord(value)) return []
  const { text, opaque } = value
  const signed = isRecord(opaque) ? opaqueOf(opaque) : undefined
  if (typeof text !== 'string') return signed ? [{ opaque: signed }] : []
  return [{ text, ...(signed ? { opaque: signed } : {}) }]
}
