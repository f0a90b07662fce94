/** Encodes and decodes what a Messages client sends back unread: signatures of thinking, and hidden reasoning. */
import { decodeSigned, encodeSigned, type SignedContent } from '../../shared/signed-content.ts'

const HOLDER = { home: 'messages-compat' } as const

/** Never empty: some clients drop a thinking block that has no signature. */
export const encodeSignature = (content: Partial<SignedContent>): string => encodeSigned(content, HOLDER)

export const decodeSignature = (text: string): Partial<SignedContent> => decodeSigned(text, HOLDER)
