/** The requests of a WebSocket: those of one stream in order, those of different streams at the same time, within bounds. */
import { GatewayError } from '../../../spec/error.ts'

/** Both as at OpenAI. */
const MAX_RUNNING = 16
const MAX_STREAMS = 32
/** Requests that run or wait. */
const MAX_REQUESTS = 256

type Work = { stream_id: string | undefined; bytes: number; run(): Promise<void> }

type Parts = {
  /** The bytes of the requests that run or wait; a single request may have more. */
  max_bytes(): number
  onIdle(): void
}

export function createStreamQueues({ max_bytes, onIdle }: Parts) {
  const names = new Set<string>()
  let waiting: Work[] = []
  const running = new Map<string | undefined, Work>()
  let bytes = 0

  function next(): void {
    while (running.size < MAX_RUNNING) {
      const at = waiting.findIndex(({ stream_id }) => !running.has(stream_id))
      const [work] = at === -1 ? [] : waiting.splice(at, 1)
      if (!work) break
      running.set(work.stream_id, work)
      void work.run().finally(() => {
        running.delete(work.stream_id)
        bytes -= work.bytes
        next()
      })
    }
    if (running.size === 0 && waiting.length === 0) onIdle()
  }

  return {
    /** Runs this after the earlier requests of its stream. Throws where a bound is reached. */
    add(stream_id: string | undefined, size: number, run: () => Promise<void>): void {
      if (stream_id !== undefined && !names.has(stream_id)) {
        if (names.size >= MAX_STREAMS) throw tooManyStreams()
        names.add(stream_id)
      }
      const requests = running.size + waiting.length
      if (requests >= MAX_REQUESTS || (requests > 0 && bytes + size > max_bytes())) throw tooManyRequests()
      bytes += size
      waiting.push({ stream_id, bytes: size, run })
      next()
    },
    isIdle: () => running.size === 0 && waiting.length === 0,
    clear(): void {
      for (const work of waiting) bytes -= work.bytes
      waiting = []
    },
  }
}

/** The wording of OpenAI. */
const tooManyStreams = () =>
  new GatewayError(
    'websocket_stream_limit_reached',
    `This WebSocket connection has reached its maximum number of distinct stream IDs (${MAX_STREAMS}). Reuse an existing stream_id or open a new WebSocket connection.`,
    { param: 'stream_id' },
  )

const tooManyRequests = () =>
  new GatewayError('rate_limit_exceeded', 'Too many requests wait on this WebSocket: wait until some have ended.', {
    retry_after: 1,
  })
