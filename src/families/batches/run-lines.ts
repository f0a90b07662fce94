/** Calls the lines of a batch that wait, as many at a time as there are slots, until none waits or it pauses. */
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import { freeBytes } from '../../kit/free-bytes.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchLine, BatchPause, LineResult } from '../../store/batches/batch-store.ts'
import { callLine } from './call-line.ts'
import { type ClaimedBatch, inputStream, PART_BYTES, storeParts } from './parts.ts'

/** `finished`: no line waits. `stopped`: it was cancelled. `closing`: the process stops. `gone`: its input was deleted. */
export type Ran = 'finished' | 'expired' | 'stopped' | 'closing' | 'revoked' | 'gone' | BatchPause

const LINES_PER_READ = 100
/** Lines that lie together are read together, up to this size. */
const READ_BYTES = 256 * 1024
/** So many results become a part of a file. */
const PART_LINES = 1_000

/** Rejects when the run was interrupted; lines whose outcome is unknown then stay marked as started. */
export async function runLines(claimed: ClaimedBatch): Promise<Ran> {
  const { batch, store, slots, clock, signal } = claimed
  const running = new Set<Promise<void>>()
  const state: { pause?: BatchPause; isRevoked?: true; fault?: unknown } = {}
  const loose = await store.loose(batch.batch_id)

  const pauseFor = (ms: number, { code, message }: { code: string; message: string }) => {
    const until_ms = Math.round(clock.now() + ms)
    if (!state.pause || state.pause.until_ms < until_ms) state.pause = { code, message, until_ms }
  }
  const isExpired = () => clock.now() >= batch.expires_at * 1000
  const isOver = () =>
    claimed.isClosing() || signal.aborted || isExpired() || Boolean(state.pause ?? state.isRevoked ?? state.fault)

  async function run(line: BatchLine, text: string, caller: Caller): Promise<void> {
    const found = await callLine(claimed.call, { batch, line, text, caller, signal })
    claimed.crashHook('batch: line answered')
    if (found.is === 'ended') {
      await keep(claimed, line, found.result)
      claimed.crashHook('batch: line stored')
      loose.lines++
      loose.bytes += found.result.text.length
      if (found.busy_ms !== undefined) pauseFor(found.busy_ms, RESERVED)
    } else if (found.is === 'later') {
      await store.unstart(batch.batch_id, startedOf(line))
      pauseFor(found.wait_ms ?? 1_000, found)
    } else if (found.is === 'revoked') {
      await store.unstart(batch.batch_id, startedOf(line))
      state.isRevoked = true
    }
  }

  /** The caller that it is called as, where it may be. */
  async function start(line: BatchLine): Promise<Caller | 'gone' | 'stopped' | 'over'> {
    if (isOver()) return 'over'
    const caller = await claimed.callerOf(batch.token_id)
    if (!caller) state.isRevoked = true
    if (!caller) return 'over'
    const started = await store.start(batch, line)
    if (started === 'lost') throw LEASE_LOST
    return started === 'started' ? caller : started
  }

  async function runAll(): Promise<'finished' | 'stopped'> {
    for await (const { line, text } of waitingLines(claimed)) {
      if (isOver()) break
      const release = await slots.take([batch.token_id, batch.batch_id], signal)
      let started: Awaited<ReturnType<typeof start>> = 'over'
      try {
        started = await start(line)
      } finally {
        if (typeof started === 'string') release()
      }
      if (started === 'gone') continue
      if (typeof started === 'string') return started === 'stopped' ? 'stopped' : 'finished'
      claimed.crashHook('batch: line started')
      const work = run(line, text, started)
        .catch((error) => {
          state.fault ??= error
        })
        .finally(() => {
          running.delete(work)
          release()
        })
      running.add(work)
      if (loose.lines < PART_LINES && loose.bytes < PART_BYTES) continue
      loose.lines = 0
      loose.bytes = 0
      await storeParts(claimed, { all: false })
    }
    return 'finished'
  }

  let outcome: Ran
  try {
    outcome = await runAll().catch((thrown) => {
      if (thrown instanceof GatewayError && thrown.code === 'file_not_found') return 'gone'
      throw thrown
    })
  } finally {
    await Promise.all(running) // so that their results are stored, and nobody calls them meanwhile
  }
  if (state.fault) throw state.fault
  signal.throwIfAborted()
  if (outcome === 'stopped' || outcome === 'gone') return outcome
  if (state.isRevoked) return 'revoked'
  if (isExpired()) return 'expired'
  if (claimed.isClosing()) return 'closing'
  return state.pause ?? outcome
}

const RESERVED = {
  code: 'rate_limit_exceeded',
  message: 'Little is left of a rate limit, which is kept for other calls of the token.',
}

const startedOf = ({ line, attempts }: BatchLine) => ({ line, attempts: attempts + 1 })

/** The lines that wait, in order, each with its text. */
export async function* waitingLines(claimed: ClaimedBatch): AsyncGenerator<{ line: BatchLine; text: string }> {
  const { batch, store } = claimed
  let after = 0
  for (;;) {
    const page = await store.pending(batch.batch_id, after, LINES_PER_READ)
    for (let at = 0; at < page.length; ) {
      const first = page[at] as BatchLine
      let end = at + 1
      while (end < page.length && endOf(page[end]) - first.offset <= READ_BYTES) end++
      const some = page.slice(at, end)
      const bytes = await readInput(claimed, first.offset, endOf(some.at(-1)))
      for (const line of some) {
        const start = line.offset - first.offset
        yield { line, text: utf8.decode(bytes.subarray(start, start + line.bytes)) }
      }
      freeBytes(bytes)
      at = end
    }
    const last = page.at(-1)
    if (!last || page.length < LINES_PER_READ) return
    after = last.line
  }
}

/** Without a byte order mark, with which some programs begin a file. */
const utf8 = new TextDecoder()

const endOf = (line: BatchLine | undefined): number => (line ? line.offset + line.bytes : 0)

/** The bytes from this place up to that one. Throws `file_not_found` where the input is gone. */
export async function readInput(claimed: ClaimedBatch, first: number, end: number): Promise<Buffer> {
  const stream = await inputStream(claimed, { first, last: end - 1 })
  const pieces: Uint8Array[] = []
  for await (const piece of stream) pieces.push(piece)
  const whole = Buffer.concat(pieces)
  pieces.forEach(freeBytes)
  return whole
}

const STORE_ATTEMPTS = 30
const STORE_MILLISECONDS = 2_000

/** What was paid for must not be lost because the store is away for a minute. */
async function keep({ store, batch, clock, log }: ClaimedBatch, line: BatchLine, result: LineResult): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const isStored = await store.end(batch.batch_id, startedOf(line), result)
      if (!isStored)
        log.warn('batch line was given up before its result', { batch_id: batch.batch_id, line: line.line })
      return
    } catch (error) {
      if (attempt === STORE_ATTEMPTS) throw error
      await new Promise<void>((resolve) => void clock.after(STORE_MILLISECONDS, resolve))
    }
  }
}
