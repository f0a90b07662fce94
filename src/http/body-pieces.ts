/** Reads a body piece by piece, within its limits of size and time, so that it is never in memory as a whole. */
import type { Clock } from '../kit/clock.ts'
import { GatewayError } from '../spec/error.ts'

export type StreamLimits = {
  max_bytes: number
  /** How long the next bytes may take to arrive. */
  pause_seconds: number
  /** How long the whole body may. */
  total_seconds: number
  clock: Clock
}

/** Throws unsupported_media_type for a compressed body, request_too_large and request_timeout. */
export async function* bodyPieces({ headers, body }: Request, limits: StreamLimits): AsyncGenerator<Uint8Array> {
  const { max_bytes, total_seconds, clock } = limits
  const coding = headers.get('content-encoding')
  if (coding && coding !== 'identity')
    throw new GatewayError(
      'unsupported_media_type',
      `The body must not be compressed, but is "${coding.slice(0, 40)}".`,
    )
  const tooLarge = () => new GatewayError('request_too_large', `The body may have at most ${max_bytes} bytes.`)
  if (Number(headers.get('content-length')) > max_bytes) throw tooLarge()
  const until_ms = clock.steady() + total_seconds * 1_000
  const reader = body?.getReader()
  try {
    for (let received = 0; reader; ) {
      const { value } = await inTime(reader.read(), until_ms, limits)
      if (!value) return
      received += value.length
      if (received > max_bytes) throw tooLarge()
      yield value
    }
  } finally {
    await reader?.cancel().catch(() => {})
  }
}

async function inTime<T>(work: Promise<T>, until_ms: number, limits: StreamLimits): Promise<T> {
  const { clock, pause_seconds, total_seconds } = limits
  const left = until_ms - clock.steady()
  const wait = Math.min(pause_seconds * 1_000, left)
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(Math.max(0, wait), () => {
    const what = wait === left ? 'The body did not arrive' : 'No bytes of the body arrived'
    const seconds = wait === left ? total_seconds : pause_seconds
    reject(new GatewayError('request_timeout', `${what} within ${seconds} s.`))
  })
  try {
    return await Promise.race([work, promise])
  } finally {
    cancel()
  }
}
