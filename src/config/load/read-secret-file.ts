/** Reads a file that holds one secret. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/** Far above any key, certificate or service account. */
const MAX_BYTES = 64 * 1024

/** The content without the line breaks at its end. Throws an Error that says why it is no secret, without its content. */
export function readSecretFile(path: string): string {
  const text = readRegularFile(path).replace(/[\r\n]+$/, '')
  if (text === '') throw new Error('it is empty')
  return text
}

function readRegularFile(path: string): string {
  // Without O_NONBLOCK, opening a named pipe waits for its writer.
  const file = open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw new Error('it is not a regular file')
    const bytes = new Uint8Array(MAX_BYTES + 1)
    const length = readSync(file, bytes, 0, bytes.length, 0)
    if (length > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes, which no secret is`)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length))
  } catch (error) {
    throw error instanceof TypeError ? new Error('it is not UTF-8 text') : error
  } finally {
    closeSync(file)
  }
}

function open(path: string, flags: number): number {
  try {
    return openSync(path, flags)
  } catch (error) {
    const { code = 'unknown cause' } = error as { code?: string }
    const why: Record<string, string> = { ENOENT: 'there is no such file', EACCES: 'permission denied' }
    throw new Error(why[code] ?? code)
  }
}
