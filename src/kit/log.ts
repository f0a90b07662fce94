/** Structured log lines, written in batches: JSON for machines, one readable line for a terminal. */
import type { Clock } from './clock.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
type LogValue = string | number | boolean | null | undefined
/** Only ids, names and numbers; never a prompt, a response or a secret. */
export type LogFields = Record<string, LogValue | readonly Record<string, LogValue>[]>

export type Log = {
  debug(event: string, fields?: LogFields): void
  /** `at_ms`: when it happened, in unix milliseconds, where that is not now. */
  info(event: string, fields?: LogFields, at_ms?: number): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields, cause?: unknown): void
  flush(): void
}

type LogLine = { now: number; level: LogLevel; event: string; worker?: number | undefined; fields: LogFields }
/** One line with its line end. */
export type LineFormat = (line: LogLine) => string

type LogParts = {
  clock: Clock
  level: LogLevel
  /** How a person reads it, on a terminal; false: JSON with every field. */
  pretty: LineFormat | false
  write: (text: string) => void
  /** The number of the process, in every line; absent: it is the only one. */
  worker?: number | undefined
}

/** Lines are buffered for at most this long, so that a busy gateway writes some thirty times a second, not thousands. */
const HOLD_MILLISECONDS = 30
/** The buffer's limit in characters, which bounds memory. */
const HOLD_CHARACTERS = 64 * 1024

export function createLog({ clock, level, pretty, write, worker }: LogParts): Log {
  const floor = LOG_LEVELS.indexOf(level)
  let held = ''
  let timed = false
  const flush = () => {
    if (!held) return
    const text = held
    held = ''
    write(text)
  }
  const encode = pretty || jsonLine
  /** The same object for each line: none keeps it. */
  const next: LogLine = { now: 0, level, event: '', worker, fields: {} }
  const line = (level: LogLevel, event: string, fields: LogFields = {}, now = clock.now()) => {
    if (LOG_LEVELS.indexOf(level) < floor) return
    next.now = now
    next.level = level
    next.event = event
    next.fields = fields
    held += encode(next)
    if (held.length > HOLD_CHARACTERS || level === 'error') return flush()
    if (timed) return
    timed = true
    clock.after(HOLD_MILLISECONDS, () => {
      timed = false
      flush()
    })
  }
  return {
    debug: (event, fields) => line('debug', event, fields),
    info: (event, fields, at_ms) => line('info', event, fields, at_ms),
    warn: (event, fields) => line('warn', event, fields),
    error: (event, fields = {}, cause) =>
      line('error', event, cause === undefined ? fields : { ...fields, cause: describeCause(cause) }),
    flush,
  }
}

/** Composed, since a copy of the fields and its encoding would take twice as long. */
function jsonLine({ now, level, event, worker, fields }: LogLine): string {
  const second = Math.floor(now / 1000)
  if (second !== start.second)
    start = { second, text: `{"time":"${new Date(second * 1000).toISOString().slice(0, -4)}` }
  if (event !== middle.event || level !== middle.level || worker !== middle.worker) {
    const process = worker === undefined ? '' : `,"worker":${worker}`
    middle = { event, level, worker, text: `","level":"${level}","event":${JSON.stringify(event)}${process}` }
  }
  const rest = JSON.stringify(fields)
  const ms = millisecond(Math.floor(now) - second * 1000)
  // One text of its parts: each further step would make one that is thrown away.
  return rest === '{}' ? `${start.text}${ms}${middle.text}}\n` : `${start.text}${ms}${middle.text},${rest.slice(1)}\n`
}

/** Of the line before: most lines are alike, and many are of one second. */
let start = { second: Number.NaN, text: '' }
let middle: Pick<LogLine, 'event' | 'level' | 'worker'> & { text: string } = {
  event: '',
  level: 'silent',
  worker: undefined,
  text: '',
}

/** The end of a time as `Date.toISOString` writes it. */
const millisecond = (ms: number): string => (MILLISECONDS[ms] ??= `${String(ms).padStart(3, '0')}Z`)
const MILLISECONDS: (string | undefined)[] = new Array(1000)

/** An error's name, message and first stack lines; only for internal errors. */
function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return textOf(cause).slice(0, 500)
  const stack = cause.stack?.split('\n').slice(0, 6).join(' | ') ?? ''
  return stack.includes(cause.message) ? stack : `${cause.name}: ${cause.message} ${stack}`
}

/** A value that cannot be converted to text, such as an object without a prototype, must not throw in the logger. */
function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return typeof value
  }
}
