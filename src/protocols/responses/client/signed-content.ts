/** What a vendor signed or encrypted, carried through a client that knows `encrypted_content` only, and back. */
import { type Carried, MARK, unwrapped, wrapped } from '../../signed-content.ts'

const HOME = 'chatcompat-response'

/** Of reasoning that is plain text: some clients send an item back only when it has something here. */
export const PLAIN = `${MARK}plain`

/** The text for `encrypted_content` of the item `id`: the dialect's own vendors' as it is, all others' wrapped. */
export function carry({ opaque, owner }: Partial<Carried>, id: string): string {
  if (!opaque) return PLAIN
  const isOwnId = opaque.id === undefined || opaque.id === id
  return opaque.origin === HOME && isOwnId && owner === undefined ? opaque.value : wrapped({ opaque, owner })
}

/** Whether it was wrapped by `carry`. */
export const isCarried = (text: string): boolean => text === PLAIN || unwrapped(text) !== undefined

/** The way back. What is wrapped badly is somebody else's text, and is left to its vendor to judge. */
export function uncarry(text: string, id: string | undefined): Partial<Carried> {
  if (text === PLAIN) return {}
  return unwrapped(text) ?? { opaque: { origin: HOME, value: text, ...(id === undefined ? {} : { id }) } }
}
