/** What another vendor signed, carried through a client that knows thinking blocks and signatures only, and back. */
import { type Carried, unwrapped, wrapped } from '../../signed-content.ts'

const HOME = 'messages-compat'

/** The text for a block's `signature` or `data`: the dialect's own vendors' as it is, all others' wrapped. */
export function carry(carried: Carried): string {
  const { opaque, owner } = carried
  return opaque.origin === HOME && opaque.id === undefined && owner === undefined ? opaque.value : wrapped(carried)
}

/** The way back. What is wrapped badly is somebody else's text, and is left to its vendor to judge. */
export const uncarry = (text: string): Carried => unwrapped(text) ?? { opaque: { origin: HOME, value: text } }
