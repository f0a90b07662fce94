/**
 * What vendors want back of their reasoning, carried through a client that knows `thoughtSignature` only, and back.
 * That field is bytes: some clients decode it and encode it again in another alphabet, so our mark is within the bytes.
 */
import { isRecord, parseJson } from '../../../kit/json.ts'
import type { Opaque, Reasoning } from '../../canonical.ts'
import { opaqueOf } from '../../signed-content.ts'

/** A part's signature: the part's own, and pieces of reasoning that came before it and were not shown. */
type SignedContent = { own?: Opaque | undefined; before?: Reasoning[] }

const MARK = 'gatehouse:'
/** The mark's first bytes in base64, of either alphabet. */
const MARK_BEGINS = 'Z2F0ZWhvdXNl'
const HOME = 'contentgen-compat'

/** The text for `thoughtSignature`: the dialect's own vendors' as it is, all else wrapped. Undefined where there is none. */
export function encodeSignature({ own, before = [] }: SignedContent): string | undefined {
  if (!own && before.length === 0) return undefined
  if (own && before.length === 0 && isPlain(own)) return own.value
  return Buffer.from(MARK + JSON.stringify([own ?? null, before])).toString('base64')
}

/** Whether it may be told as it is. */
export const isPlain = ({ origin, id }: Opaque): boolean => origin === HOME && id === undefined

/** The way back. What is wrapped badly is somebody else's text, and is left to its vendor to judge. */
export const decodeSignature = (signature: string): SignedContent =>
  unwrapped(signature) ?? { own: { origin: HOME, value: signature } }

/** Whether it was wrapped by `carry`. */
export const isWrapped = (signature: string): boolean => unwrapped(signature) !== undefined

function unwrapped(signature: string): SignedContent | undefined {
  if (!signature.startsWith(MARK_BEGINS)) return undefined
  const text = Buffer.from(signature, 'base64').toString()
  if (!text.startsWith(MARK)) return undefined
  const wrapped = parseJson(text.slice(MARK.length))
  if (!Array.isArray(wrapped)) return undefined
  const [own, before] = wrapped
  if (!Array.isArray(before)) return undefined
  const opaque = isRecord(own) ? opaqueOf(own) : undefined
  return { ...(opaque ? { own: opaque } : {}), before: before.flatMap(pieceOf) }
}

function pieceOf(value: unknown): Reasoning[] {
  if (!isRecord(value)) return []
  const { text, opaque } = value
  const signed = isRecord(opaque) ? opaqueOf(opaque) : undefined
  if (typeof text !== 'string') return signed ? [{ opaque: signed }] : []
  return [{ text, ...(signed ? { opaque: signed } : {}) }]
}
