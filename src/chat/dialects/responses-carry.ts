/** What a vendor signed or encrypted, carried through a client that knows `encrypted_content` only, and back. */
import { ENDPOINT_FAMILIES } from '../../spec/endpoint-family.ts'
import type { Opaque } from '../../spec/message.ts'

/** An opaque value, and the call or image it belongs to where it is not a piece of reasoning. */
export type Carried = { opaque?: Opaque | undefined; owner?: string | undefined }

/** No vendor's ciphertext begins so: a full stop is not in base64. */
const MARK = 'gatehouse.'
const HOME = 'chatcompat-response'

/** Of reasoning that is plain text: some clients send an item back only when it has something here. */
export const PLAIN = `${MARK}plain`

/** The text for `encrypted_content` of the item `id`: the dialect's own vendors' as it is, all others' wrapped. */
export function carry({ opaque, owner }: Carried, id: string): string {
  if (!opaque) return PLAIN
  const isOwnId = opaque.id === undefined || opaque.id === id
  if (opaque.origin === HOME && isOwnId && owner === undefined) return opaque.value
  const parts = [opaque.origin, opaque.value, opaque.id ?? null, owner ?? null]
  return MARK + Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/** Whether it was wrapped by `carry`. */
export const isCarried = (text: string): boolean => text === PLAIN || unwrapped(text) !== undefined

/** The way back. What is wrapped badly is somebody else's text, and is left to its vendor to judge. */
export function uncarry(text: string, id: string | undefined): Carried {
  if (text === PLAIN) return {}
  return unwrapped(text) ?? { opaque: { origin: HOME, value: text, ...(id === undefined ? {} : { id }) } }
}

function unwrapped(text: string): Carried | undefined {
  if (!text.startsWith(MARK)) return undefined
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(text.slice(MARK.length), 'base64url').toString())
  } catch {
    return undefined
  }
  if (!Array.isArray(parts)) return undefined
  const [family, value, id, owner] = parts
  const origin = ENDPOINT_FAMILIES.find((known) => known === family)
  if (origin === undefined || typeof value !== 'string') return undefined
  return {
    opaque: { origin, value, ...(typeof id === 'string' ? { id } : {}) },
    ...(typeof owner === 'string' ? { owner } : {}),
  }
}
