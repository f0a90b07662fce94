/** Text that only its writer can read and change: encrypted and authenticated (AES-256-GCM). */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `salt` and `purpose` keep texts of one secret apart. */
export type BoxKey = { secret: string; salt: string; purpose: string }

const cipherKey = ({ secret, salt, purpose }: BoxKey) => Buffer.from(hkdfSync('sha256', secret, salt, purpose, 32))

/** As base64url, which may stand in a cookie. */
export function seal(text: string, key: BoxKey): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', cipherKey(key), nonce)
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** Base64 in both of its alphabets. Throws where the text was changed, or sealed with another key. */
export function unseal(sealed: string, key: BoxKey): string {
  const bytes = Buffer.from(sealed, 'base64')
  const tag = bytes.subarray(Math.max(NONCE_BYTES, bytes.length - TAG_BYTES))
  const decipher = createDecipheriv('aes-256-gcm', cipherKey(key), bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  })
  decipher.setAuthTag(tag)
  const text = decipher.update(bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES))
  return Buffer.concat([text, decipher.final()]).toString('utf8')
}
