/** One subject against one world: calls arrive at random times, and what their clients see is counted. */
import { GatewayError } from '../../src/spec/error.ts'
import { createVirtualClock, type VirtualClock } from './virtual-time.ts'
import { type Answer, randomOf, type World } from './world.ts'

/** Sends a call to a target, by its index. Resolves at the first byte, rejects with the error of the target or the signal. */
export type Send = (target: number, signal: AbortSignal) => Promise<void>

export type Subject = {
  /** Resolves at the first byte with what is to be called when the response has ended. */
  call(send: Send, signal: AbortSignal): Promise<() => void>
}

export type SubjectParts = { clock: VirtualClock; world: World; random(): number }
export type CreateSubject = (parts: SubjectParts) => Subject

export type Figures = {
  requests: number
  errors: number
  /** Milliseconds to the first byte, of those that were answered. */
  p50: number
  p99: number
  /** By the prices of the targets: each call that answered, or was aborted before it could, is paid. */
  cost: number
  upstream: number
}

/** How long a client waits for the first byte. */
const PATIENCE_MS = 60_000
/** From the first byte to the end of a response. */
const RESPONSE_MS = 1_500

type Simulation = { world: World; create: CreateSubject; per_second: number; seed: number }

export async function simulate({ world, create, per_second, seed }: Simulation): Promise<Figures> {
  const clock = createVirtualClock()
  const arrivals = randomOf(seed * 17 + 3)
  const subject = create({ clock, world, random: randomOf(seed * 13 + 5) })
  const open = world.prices.map(() => 0)
  const times: number[] = []
  const figures = { requests: 0, errors: 0, cost: 0, upstream: 0 }

  function sender(call: number): Send {
    return (target, signal) => {
      figures.upstream++
      open[target] = (open[target] ?? 0) + 1
      const answer = world.answer(target, call, clock.steady(), open[target] ?? 0)
      const isPaid = answer.kind === 'ok' || answer.kind === 'silent'
      if (isPaid) figures.cost += world.prices[target] ?? 0
      const close = () => {
        open[target] = (open[target] ?? 0) - 1
      }
      return new Promise((resolve, reject) => {
        const fail = (error: unknown) => {
          stop()
          close()
          reject(error)
        }
        const onAbort = () => fail(signal.reason)
        const stopTimer =
          answer.kind === 'silent'
            ? () => {}
            : clock.after(answer.ms, () => {
                if (answer.kind !== 'ok') return fail(errorOf(answer))
                stop()
                clock.after(RESPONSE_MS, close)
                resolve()
              })
        const stop = () => {
          stopTimer()
          signal.removeEventListener('abort', onAbort)
        }
        signal.addEventListener('abort', onAbort)
      })
    }
  }

  async function request(call: number): Promise<void> {
    const started = clock.steady()
    const client = new AbortController()
    const leave = clock.after(PATIENCE_MS, () => client.abort(new GatewayError('client_closed_request', 'It left.')))
    try {
      const end = await subject.call(sender(call), client.signal)
      times.push(clock.steady() - started)
      clock.after(RESPONSE_MS, end)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      figures.errors++
    } finally {
      leave()
    }
  }

  const failures: unknown[] = []
  function arrive(): void {
    request(figures.requests++).catch((error: unknown) => failures.push(error))
    const wait = (-Math.log(1 - arrivals()) / per_second) * 1000
    if (clock.steady() + wait < world.seconds * 1000) clock.after(wait, arrive)
  }
  clock.after(0, arrive)
  await clock.runUntil((world.seconds + 1) * 1000 + 2 * PATIENCE_MS)
  if (failures.length > 0) throw failures[0]
  const sorted = Float64Array.from(times).sort()
  const at = (share: number) => sorted[Math.floor(share * sorted.length)] ?? Number.NaN
  return { ...figures, p50: at(0.5), p99: at(0.99) }
}

function errorOf({ kind }: Answer): GatewayError {
  if (kind === 'refused') return new GatewayError('upstream_unreachable', 'No connection.', { accepted: 'no' })
  if (kind === 'limited') {
    return new GatewayError('rate_limit_exceeded', 'Too many requests.', { upstream_status: 429, retry_after: 2 })
  }
  return new GatewayError('bad_upstream_response', 'It failed.', { upstream_status: 500 })
}
