/** Reads a form part by part while it arrives (RFC 7578), so that a file of it is never in memory as a whole. */
import { freeBytes } from '../kit/free-bytes.ts'
import { GatewayError } from '../spec/error.ts'
import { wrongType } from './body.ts'
import { bodyPieces, type StreamLimits } from './body-pieces.ts'
import {
  boundaryOf,
  brokenForm,
  isForm,
  MOST_HEADER_BYTES,
  MOST_PARTS,
  type PartHeaders,
  partHeaders,
} from './multipart.ts'

/** A part whose bytes must be read before the next part is asked for, and each piece used before the next one. */
export type StreamedPart = PartHeaders & { bytes(): AsyncGenerator<Uint8Array> }

const LINE = Buffer.from('\r\n')
const HEADERS_END = Buffer.from('\r\n\r\n')
/** Nothing stands before the first part in any real form. */
const MOST_PREAMBLE_BYTES = 1_024
const EARLY = 'it ends early, or its parts are not separated by its boundary'

/** Throws unsupported_media_type, request_too_large, request_timeout, or invalid_value for a broken form. */
export async function* streamForm(request: Request, limits: StreamLimits): AsyncGenerator<StreamedPart> {
  const type = request.headers.get('content-type') ?? ''
  if (!isForm(type)) throw wrongType(type, 'multipart/form-data')
  const boundary = boundaryOf(type)
  const source = new FormSource(bodyPieces(request, limits))
  try {
    yield* partsOf(source, boundary)
  } finally {
    await source.close()
  }
}

async function* partsOf(source: FormSource, boundary: string): AsyncGenerator<StreamedPart> {
  // As if a line had ended before the body, so that the first delimiter is one like the others.
  source.held = LINE
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  let skipped = 0
  for await (const bytes of source.until(delimiter)) {
    skipped += bytes.length
    if (skipped > MOST_PREAMBLE_BYTES) throw brokenForm('it does not begin with its boundary')
  }
  for (let count = 0; ; count++) {
    const line = (await source.through(LINE, MOST_HEADER_BYTES)).toString('latin1').trim()
    if (line === '--' || line.startsWith('--')) return
    if (line !== '') throw brokenForm(EARLY)
    if (count === MOST_PARTS) throw new GatewayError('invalid_value', `The form may have at most ${MOST_PARTS} parts.`)
    const headers = partHeaders((await source.through(HEADERS_END, MOST_HEADER_BYTES)).toString('utf8'))
    const bytes = source.until(delimiter)
    yield { ...headers, bytes: () => bytes }
    // What the reader has left.
    for await (const _ of bytes);
  }
}

/** The bytes of a body as they arrive. */
class FormSource {
  /** Bytes that have arrived and are not used yet. */
  held: Buffer = Buffer.alloc(0)
  /** The whole of what `held` is the rest of. */
  #whole = this.held
  readonly #pieces: AsyncGenerator<Uint8Array>

  constructor(pieces: AsyncGenerator<Uint8Array>) {
    this.#pieces = pieces
  }

  /** The bytes before the delimiter, which is then used too. Throws where the body ends before it. */
  async *until(delimiter: Buffer): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.held.indexOf(delimiter)
      if (at !== -1) {
        const bytes = this.held.subarray(0, at)
        this.held = this.held.subarray(at + delimiter.length)
        if (bytes.length > 0) yield bytes
        return
      }
      // The delimiter may have begun in the last bytes.
      const safe = this.held.length - delimiter.length + 1
      if (safe > 0) {
        const bytes = this.held.subarray(0, safe)
        this.held = this.held.subarray(safe)
        yield bytes
      }
      await this.#more()
    }
  }

  /** The same as one piece of bounded length. */
  async through(end: Buffer, most: number): Promise<Buffer> {
    for (;;) {
      const at = this.held.indexOf(end)
      if (at > most || (at === -1 && this.held.length > most + end.length)) {
        throw brokenForm(`the headers of a part do not end, or have more than ${most} bytes`)
      }
      if (at !== -1) {
        const bytes = this.held.subarray(0, at)
        this.held = this.held.subarray(at + end.length)
        return bytes
      }
      await this.#more()
    }
  }

  async close(): Promise<void> {
    await this.#pieces.return(undefined)
  }

  async #more(): Promise<void> {
    const { value: piece } = await this.#pieces.next()
    if (!piece) throw brokenForm(EARLY)
    const used = this.#whole
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length)
    this.#whole = this.held.length === 0 ? bytes : Buffer.concat([this.held, bytes])
    this.held = this.#whole
    freeBytes(used)
    if (this.#whole !== bytes) freeBytes(piece)
  }
}
