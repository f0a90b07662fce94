/** Wraps content that a vendor signed or encrypted as one text, which a client of another API sends back. */
import { parseJson } from '../../kit/json.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../../spec/endpoint-family.ts'
import type { Opaque } from './canonical.ts'

/** A signed value, and the id of its call or image if it does not belong to a piece of reasoning. */
export type SignedContent = { opaque: Opaque | undefined; owner?: string | undefined }

/** No signature of a vendor starts like this: base64 has no full stop. */
export const MARK = 'gatehouse.'

/** The text of reasoning that no vendor signed: some clients send reasoning back only with a signature. */
export const PLAIN = `${MARK}plain`

function wrapped({ origin, value, id }: Opaque, owner: string | undefined): string {
  return MARK + Buffer.from(JSON.stringify([origin, value, id ?? null, owner ?? null])).toString('base64url')
}

/** The reverse; undefined if the text was not wrapped here. */
function unwrapped(text: string): SignedContent | undefined {
  if (!text.startsWith(MARK)) return undefined
  const parts = parseJson(Buffer.from(text.slice(MARK.length), 'base64url').toString())
  if (!Array.isArray(parts)) return undefined
  const [origin, value, id, owner] = parts
  const opaque = opaqueOf({ origin, value, id })
  return opaque && { opaque, ...(typeof owner === 'string' ? { owner } : {}) }
}

/** Validates a value that a client sent. */
export function opaqueOf({ origin: family, value, id }: Record<string, unknown>): Opaque | undefined {
  const origin = ENDPOINT_FAMILIES.find((known) => known === family)
  if (origin === undefined || typeof value !== 'string') return undefined
  return { origin, value, ...(typeof id === 'string' ? { id } : {}) }
}

/** `home`: the API whose own values pass as they are. `item_id`: the id of the item that holds the value. */
type Holder = { home: EndpointFamily; item_id?: string | undefined }

/** The text for a client of `home`, never empty. All values but those of its own providers are wrapped. */
export function encodeSigned({ opaque, owner }: Partial<SignedContent>, { home, item_id }: Holder): string {
  if (!opaque) return PLAIN
  const isOwnId = opaque.id === undefined || opaque.id === item_id
  return opaque.origin === home && isOwnId && owner === undefined ? opaque.value : wrapped(opaque, owner)
}

/** The reverse of `encodeSigned`. A text that was not wrapped correctly goes to the provider, which judges it. */
export function decodeSigned(text: string, { home, item_id }: Holder): Partial<SignedContent> {
  if (text === PLAIN) return {}
  return unwrapped(text) ?? { opaque: { origin: home, value: text, ...(item_id === undefined ? {} : { id: item_id }) } }
}

export const isEncoded = (text: string): boolean => text === PLAIN || unwrapped(text) !== undefined
