/** Secrets and identifiers: made from a secure source, hashed for storage, compared in constant time. */
import { hash, timingSafeEqual } from 'node:crypto'

const ALPHANUMERICS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Random bytes are fetched in advance: one call for some hundred ids costs little more than one for a single id. */
const pool = new Uint8Array(8192)
let used = pool.length

/** `length` alphanumerics from a CSPRNG, each equally likely (bytes from 248 up are thrown away: 248 = 4 * 62). */
export function randomAlphanumerics(length: number): string {
  let text = ''
  while (text.length < length) {
    if (used === pool.length) {
      crypto.getRandomValues(pool)
      used = 0
    }
    const byte = pool[used] ?? 255
    pool[used++] = 0
    if (byte < 248) text += ALPHANUMERICS[byte % 62]
  }
  return text
}

export const sha256 = (text: string): string => hash('sha256', text, 'hex')

/** Whether two texts of equal length are the same, in a time that does not tell where they differ. */
export function isSameText(left: string, right: string): boolean {
  const a = Buffer.from(left)
  const b = Buffer.from(right)
  return a.length === b.length && timingSafeEqual(a, b)
}
