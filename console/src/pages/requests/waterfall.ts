/** Places the attempts of a request on one axis of time: when each began, how long it took, and what came of it. */

export type WaterfallAttempt = {
  target: string
  key?: string | undefined
  start_ms?: number | undefined
  ms?: number | undefined
  error?: string | undefined
  upstream_status?: number | undefined
  hedge?: boolean | undefined
  lost?: boolean | undefined
  next?: string | undefined
}

export type WaterfallRequest = {
  total_ms: number
  queued_ms?: number | undefined
  first_byte_ms?: number | undefined
  stream?: boolean | undefined
  attempts: readonly WaterfallAttempt[]
}

/** `wait`: before the first attempt; `served`, `failed`, `lost`: an attempt; `response`: from its first byte to its last. */
export type BarKind = 'wait' | 'served' | 'failed' | 'lost' | 'response'
export type Bar = {
  kind: BarKind
  label: string
  /** Milliseconds from the arrival. */
  start_ms: number
  ms: number
  /** Parts of the whole time, 0 to 1. */
  from: number
  width: number
  /** The number of the attempt in `attempts`. */
  attempt?: number
}
export type Waterfall = { total_ms: number; bars: Bar[]; ticks: number[]; isEstimated: boolean }

/** A bar is never narrower than this part of the axis, so that it can be seen. */
const LEAST_WIDTH = 0.004

/** Older rows do not have the starts: their attempts follow each other, and a hedge begins with the one before it. */
export function layOut(request: WaterfallRequest): Waterfall {
  const total_ms = Math.max(request.total_ms, 0)
  const { attempts, queued_ms = 0 } = request
  const spans = spansOf(attempts, { total_ms, queued_ms })
  const end_ms = Math.max(total_ms, ...spans.map(({ start_ms, ms }) => start_ms + ms))
  const bars: Omit<Bar, 'from' | 'width'>[] = []
  const first = spans[0]
  if (first && first.start_ms > 0 && first.start_ms / (end_ms || 1) > LEAST_WIDTH)
    bars.push({
      kind: 'wait',
      label: queued_ms > 0 ? 'Queue' : 'Before the first attempt',
      start_ms: 0,
      ms: first.start_ms,
    })
  for (const [index, attempt] of attempts.entries()) {
    const span = spans[index]
    if (span) bars.push({ kind: kindOf(attempt), label: nameOf(attempt), ...span, attempt: index })
  }
  const served = attempts.findIndex((one) => kindOf(one) === 'served')
  const span = spans[served]
  if (span && total_ms > span.start_ms + span.ms) {
    const start_ms = span.start_ms + span.ms
    bars.push({ kind: 'response', label: request.stream ? 'Stream' : 'Response', start_ms, ms: total_ms - start_ms })
  }
  return {
    total_ms: end_ms,
    bars: bars.map((bar) => ({ ...bar, ...partOf(bar, end_ms) })),
    ticks: ticksOf(end_ms),
    isEstimated: attempts.some(({ start_ms }) => start_ms === undefined),
  }
}

export const nameOf = ({ target, key }: WaterfallAttempt): string => (key === undefined ? target : `${target} · ${key}`)

function kindOf({ error, lost }: WaterfallAttempt): 'served' | 'failed' | 'lost' {
  if (lost) return 'lost'
  return error === undefined ? 'served' : 'failed'
}

type Whole = { total_ms: number; queued_ms: number }

function spansOf(attempts: readonly WaterfallAttempt[], { total_ms, queued_ms }: Whole) {
  let at_ms = queued_ms
  let former_ms = queued_ms
  return attempts.map(({ start_ms: known, ms: took, hedge }) => {
    const start_ms = known ?? (hedge ? former_ms : at_ms)
    // An attempt without a time was given up when the request ended.
    const ms = took ?? Math.max(0, total_ms - start_ms)
    former_ms = start_ms
    at_ms = Math.max(at_ms, start_ms + ms)
    return { start_ms, ms }
  })
}

function partOf({ start_ms, ms }: { start_ms: number; ms: number }, whole_ms: number) {
  if (whole_ms <= 0) return { from: 0, width: 1 }
  const width = Math.min(1, Math.max(LEAST_WIDTH, ms / whole_ms))
  return { from: Math.min(start_ms / whole_ms, 1 - width), width }
}

/** Round times, three to six of them. */
export function ticksOf(whole_ms: number): number[] {
  if (whole_ms <= 0) return [0]
  const power = 10 ** Math.floor(Math.log10(whole_ms / 3))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => whole_ms / size <= 5) ?? power * 10
  return Array.from({ length: Math.floor(whole_ms / step) + 1 }, (_, index) => index * step)
}
