/** Formats log lines for a terminal: short, aligned, coloured. Files and pipes get JSON with every field. */
import type { LineFormat, LogFields, LogLevel } from '../kit/log.ts'

const CODES = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
type Paint = (code: keyof typeof CODES, text: string) => string

const LEVEL_COLORS = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red', silent: 'dim' } as const
/** Wide enough for nearly all events and paths; longer ones push the rest of their line. */
const EVENT_COLUMNS = 26
const PATH_COLUMNS = 34
const MAX_VALUE_CHARACTERS = 160

/** UTC, as in the long form, without the date. */
export function terminalFormat({ color }: { color: boolean }): LineFormat {
  const paint: Paint = (code, text) => (color && text !== '' ? `\x1b[${CODES[code]}m${text}\x1b[0m` : text)
  return ({ now, level, event, fields }) => {
    const time = paint('dim', new Date(now).toISOString().slice(11, 19))
    const rank = paint(LEVEL_COLORS[level], level.padEnd(5))
    const text = event === 'request' ? requestText(fields, paint) : eventText(level, event, fields, paint)
    return `${time} ${rank} ${text}\n`
  }
}

/** `POST /v1/chat/completions             200   152 ms  acme/large  12+40 tokens`; failures also have their request id. */
function requestText(fields: LogFields, paint: Paint): string {
  const { method, path, status, total_ms, outcome, model, target, attempts, input_tokens, output_tokens, ...rest } =
    fields
  const { request_id, estimated, ...others } = rest
  const failed = Number(status) >= 400
  const code = paint(Number(status) >= 500 ? 'red' : failed ? 'yellow' : 'green', String(status))
  const tokens = input_tokens === undefined ? '' : `${estimated ? '~' : ''}${input_tokens}+${output_tokens ?? 0} tokens`
  const parts = [
    `${`${shorten(method)} ${shorten(path)}`.padEnd(PATH_COLUMNS)} ${code} ${`${Math.round(Number(total_ms))} ms`.padStart(9)}`,
    paint(
      'cyan',
      [model, target]
        .filter((name) => name !== undefined && name !== '')
        .map(shorten)
        .join(' -> '),
    ),
    tokens,
    attempts === undefined ? '' : `${attempts} attempts`,
    outcome === 'ok' || outcome === undefined ? '' : paint('yellow', shorten(outcome)),
    failed ? pairs({ request_id }, paint) : '',
    pairs(others, paint),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function eventText(level: LogLevel, event: string, fields: LogFields, paint: Paint): string {
  const name = event.padEnd(EVENT_COLUMNS)
  return `${level === 'error' ? paint('red', name) : name} ${pairs(fields, paint)}`.trimEnd()
}

const pairs = (fields: LogFields, paint: Paint): string =>
  Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([key, value]) => `${paint('dim', `${key}=`)}${shorten(value)}`)
    .join('  ')

/** On one line; control characters, which a terminal would interpret, are replaced. */
function shorten(value: unknown): string {
  const text = String(value).replaceAll(/\p{Cc}+/gu, ' ')
  return text.length > MAX_VALUE_CHARACTERS ? `${text.slice(0, MAX_VALUE_CHARACTERS - 3)}...` : text
}
