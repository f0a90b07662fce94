/** Reads a request's body: of the right type, within its size and its time, and well-formed. */
import type { Clock } from '../kit/clock.ts'
import { GatewayError } from '../spec/error.ts'

export type BodyLimits = { max_bytes: number; seconds: number; clock: Clock }

/** The parsed JSON body. Throws unsupported_media_type, request_too_large, request_timeout or invalid_json. */
export async function readJson(request: Request, limits: BodyLimits): Promise<unknown> {
  const type = request.headers.get('content-type') ?? ''
  if (!isJson(type)) {
    const found = type === '' ? 'no content-type' : `"${type.slice(0, 100)}"`
    throw new GatewayError('unsupported_media_type', `The body must be sent as application/json, not ${found}.`)
  }
  const coding = request.headers.get('content-encoding')
  if (coding && coding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      `The body must not be compressed, but is "${coding.slice(0, 40)}".`,
    )
  }
  return parseJson(await readText(request, limits))
}

const isJson = (type: string): boolean =>
  type === 'application/json' || /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)

async function readText(request: Request, { max_bytes, seconds, clock }: BodyLimits): Promise<string> {
  const tooLarge = () => new GatewayError('request_too_large', `The body may have at most ${max_bytes} bytes.`)
  const length = Number(request.headers.get('content-length') ?? Number.NaN)
  if (length > max_bytes) throw tooLarge()
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(seconds * 1000, () =>
      reject(new GatewayError('request_timeout', `The body did not arrive within ${seconds} s.`)),
    )
  })
  try {
    // What announces its length is held to it by the server; only a chunked body must be counted while it comes.
    if (!Number.isFinite(length)) return await Promise.race([countedText(request, max_bytes, tooLarge), late])
    const text = await Promise.race([request.text(), late])
    if (text.length > max_bytes) throw tooLarge()
    return text
  } finally {
    cancel()
  }
}

async function countedText(request: Request, max_bytes: number, tooLarge: () => GatewayError): Promise<string> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of request.body ?? []) {
    size += piece.length
    if (size > max_bytes) throw tooLarge()
    pieces.push(piece)
  }
  return new TextDecoder().decode(Buffer.concat(pieces))
}

const BYTE_ORDER_MARK = 0xfeff

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text)
  } catch (error) {
    const why = text.trim() === '' ? 'it is empty' : (error as Error).message
    throw new GatewayError('invalid_json', `The body is not valid JSON: ${why}.`)
  }
}
