/** Secrets and identifiers: made from a secure source, hashed for storage, compared in constant time. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const ALPHANUMERICS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** `length` alphanumerics from a CSPRNG, each equally likely (bytes from 248 up are thrown away: 248 = 4 * 62). */
export function randomAlphanumerics(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && text.length < length) text += ALPHANUMERICS[byte % 62]
    }
  }
  return text
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Whether two texts of equal length are the same, in a time that does not tell where they differ. */
export function isSameText(left: string, right: string): boolean {
  const a = Buffer.from(left)
  const b = Buffer.from(right)
  return a.length === b.length && timingSafeEqual(a, b)
}
