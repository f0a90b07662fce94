/** Encrypts texts with AES-256-GCM, under keys that can be rotated. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

/** `id`: the first 16 hexadecimal digits of the SHA-256 of its bytes. It identifies a key and does not reveal it. */
export type SealingKey = { id: string; bytes: Buffer }

type SealedText = {
  key_id: string
  /** In base64: 12 bytes of nonce, the ciphertext, 16 bytes of tag. */
  sealed: string
}

const KEY_TEXT = /^[A-Za-z0-9+/]{43}=$/
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

export const SEALING_KEY_FORMAT =
  '32 random bytes in base64, which are 44 characters; openssl rand -base64 32 makes one'

/** Undefined: the text is no key. A key of one repeated byte is none either: it was not drawn at random. */
export function sealingKey(text: string): SealingKey | undefined {
  if (!KEY_TEXT.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length !== KEY_BYTES || bytes.toString('base64') !== text || new Set(bytes).size === 1) return undefined
  return { id: createHash('sha256').update(bytes).digest('hex').slice(0, 16), bytes }
}

/** `bound_to`: authenticated with the text; the same has to be given to open it. */
export function sealText(text: string, key: SealingKey, bound_to: string): SealedText {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key.bytes, nonce).setAAD(Buffer.from(bound_to))
  const parts = [nonce, cipher.update(text, 'utf8'), cipher.final()]
  return { key_id: key.id, sealed: Buffer.concat([...parts, cipher.getAuthTag()]).toString('base64') }
}

/** `unknown_key`: none of the keys has sealed it. `changed`: it, or what it is bound to, was changed since. */
export function openSealed(
  { key_id, sealed }: SealedText,
  keys: readonly SealingKey[],
  bound_to: string,
): { text: string } | 'unknown_key' | 'changed' {
  const key = keys.find(({ id }) => id === key_id)
  if (!key) return 'unknown_key'
  const bytes = Buffer.from(sealed, 'base64')
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return 'changed'
  try {
    const cipher = createDecipheriv('aes-256-gcm', key.bytes, bytes.subarray(0, NONCE_BYTES))
    cipher.setAAD(Buffer.from(bound_to)).setAuthTag(bytes.subarray(-TAG_BYTES))
    const text = cipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES))
    return { text: Buffer.concat([text, cipher.final()]).toString('utf8') }
  } catch {
    return 'changed'
  }
}
