/** Reads the public data of models.dev from an address or a file, with size limits, and validates each row. */
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import Type from 'typebox'
import { placeName } from '../../config/check/problem.ts'
import type { Entries } from '../../config/edit/edit-yaml.ts'
import { systemClock } from '../../kit/clock.ts'
import { diagnoseAll, foundText } from '../../kit/diagnose.ts'
import { createLog } from '../../kit/log.ts'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { createTransport } from '../../providers/upstream/transport.ts'
import type { UpstreamResponse } from '../../providers/upstream/upstream-request.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import type { Terminal } from '../terminal.ts'
import { isLiteLlm, rowsOfLiteLlm } from './models-import-litellm.ts'

export const MODELS_DEV = 'https://models.dev/api.json'

/** The data of one model in models.dev that the import uses; missing values are absent. */
export type Facts = {
  created?: number
  deprecated: boolean
  context_tokens?: number
  /** The maximum output tokens of one response. */
  output_tokens?: number
  /** Input and output modalities: `text`, `image`, `audio`, `video`, `pdf`. */
  input?: string[]
  output?: string[]
  tools?: boolean
  json_schema?: boolean
  /** False where the data says that it belongs to another family. */
  is_chat: boolean
  /** In USD, in the units of the configuration. */
  prices?: Figures
}

/** The prices that the data may have, in the order in which they are written. */
export const FIGURES = [
  'input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'input_audio',
  'output',
  'reasoning',
  'output_audio',
  'image',
  'video_second',
  'searches',
] as const
type Figures = { [name in (typeof FIGURES)[number]]?: number } & { tiers?: Entries }

export type Vendor = { id: string; api: string | undefined; rows: ReadonlyMap<string, unknown> }

export type ModelsDev = {
  /** The `source` of the prices that an import writes. */
  name: 'models.dev' | 'LiteLLM'
  /** The address or file it came from. */
  source: string
  /** The day of the data, `2026-11-20`. */
  as_of: string
  vendors: ReadonlyMap<string, Vendor>
}

/** Ten times the size of the data in 2026. */
export const MAX_BYTES = 20 * 1024 * 1024
/** Ten times the price of any model so far: a higher figure has another unit or is an error. */
const MAX_PRICE = 10_000
/** A thousand times the largest context window. */
const MAX_TOKENS = 1_000_000_000

const price = Type.Optional(Type.Number({ minimum: 0, maximum: MAX_PRICE }))
const tokens = Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_TOKENS }))
const names = Type.Optional(Type.Array(Type.String()))

const costs = {
  input: price,
  output: price,
  cache_read: price,
  cache_write: price,
  cache_write_1h: price,
  reasoning: price,
  input_audio: price,
  output_audio: price,
  image: price,
  video_second: price,
  searches: price,
}

/** Unused members may be anything. */
const Row = Type.Object({
  // In older data an object with details.
  tool_call: Type.Optional(Type.Union([Type.Boolean(), Type.Object({ supported: Type.Boolean() })])),
  structured_output: Type.Optional(Type.Boolean()),
  // A day, or only the month.
  release_date: Type.Optional(Type.String({ pattern: '^\\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\\d|3[01]))?$' })),
  modalities: Type.Optional(Type.Object({ input: names, output: names })),
  limit: Type.Optional(Type.Object({ context: tokens, output: tokens })),
  cost: Type.Optional(
    Type.Object({
      ...costs,
      context_over_200k: Type.Optional(Type.Object(costs)),
      tiers: Type.Optional(Type.Array(Type.Object({ above_input_tokens: Type.Integer(), ...costs }))),
    }),
  ),
  mode: Type.Optional(Type.String()),
  status: Type.Optional(Type.String()),
})
type Row = Type.Static<typeof Row>

/** Throws an Error that names the source, the place in it, and what would be right. */
export async function readModelsDev(from: string, terminal: Terminal): Promise<ModelsDev> {
  const { text, as_of } = /^https?:\/\//i.test(from) ? await fetched(from, terminal) : readLocal(from, terminal.cwd)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`${from} is not JSON: ${(error as Error).message}`)
  }
  const root = recordOf(value) ?? refuse(from, [], 'an object of vendors, as in api.json of models.dev', value)
  const vendors = new Map<string, Vendor>()
  if (isLiteLlm(root)) {
    for (const [id, rows] of rowsOfLiteLlm(root)) vendors.set(id, { id, api: undefined, rows })
    return { name: 'LiteLLM', source: from, as_of, vendors }
  }
  for (const [id, entry] of Object.entries(root)) {
    const vendor = recordOf(entry) ?? refuse(from, [id], 'an object', entry)
    const rows = recordOf(vendor.models) ?? refuse(from, [id, 'models'], 'an object of models', vendor.models)
    const api = typeof vendor.api === 'string' ? vendor.api : undefined
    vendors.set(id, { id, api, rows: new Map(Object.entries(rows)) })
  }
  if (vendors.size === 0) refuse(from, [], 'an object of vendors', value)
  return { name: 'models.dev', source: from, as_of, vendors }
}

/** The facts of a row, or its problems: one sentence each, with the path. */
export function readRow(vendor: string, model: string, row: unknown): { facts: Facts } | { problems: string[] } {
  const known = withoutNulls(row)
  const problems = diagnoseAll(Row, known).map(
    ({ path, expected, found }) =>
      `${placeName([vendor, 'models', model, ...path])}: found ${foundText(found)}, must be ${expected}`,
  )
  return problems.length > 0 ? { problems } : { facts: factsOf(known as Row) }
}

function factsOf({ tool_call, structured_output, release_date, modalities, limit, cost, status, mode }: Row): Facts {
  const prices = cost && figuresOf(cost)
  return {
    deprecated: status === 'deprecated',
    is_chat: mode === undefined || CHAT_MODES.includes(mode),
    ...(release_date === undefined ? {} : { created: secondsOf(release_date) }),
    // 0 means unknown.
    ...(limit?.context ? { context_tokens: limit.context } : {}),
    ...(limit?.output ? { output_tokens: limit.output } : {}),
    ...(modalities?.input ? { input: modalities.input } : {}),
    ...(modalities?.output ? { output: modalities.output } : {}),
    ...(tool_call === undefined ? {} : { tools: typeof tool_call === 'boolean' ? tool_call : tool_call.supported }),
    ...(structured_output === undefined ? {} : { json_schema: structured_output }),
    ...(prices ? { prices } : {}),
  }
}

/** Of LiteLLM's data; that of models.dev has none. */
const CHAT_MODES = ['chat', 'responses', 'completion']

/** Undefined where only parts have a price: they need the price of the whole. */
function figuresOf({ context_over_200k, tiers = [], ...cost }: NonNullable<Row['cost']>): Figures | undefined {
  const figures: Figures = partsOf(cost)
  const all = context_over_200k ? [{ above_input_tokens: 200_000, ...context_over_200k }, ...tiers] : tiers
  const entries = all.map(({ above_input_tokens, ...own }) => ({ above_input_tokens, ...partsOf(own) }))
  if (entries.length > 0) figures.tiers = entries.sort((a, b) => a.above_input_tokens - b.above_input_tokens)
  const { input, output, image, video_second, searches } = figures
  return [input, output, image, video_second, searches].some((one) => one !== undefined) ? figures : undefined
}

/** In the names of the configuration. */
function partsOf({ cache_read, ...cost }: { cache_read?: number } & { [name: string]: number | undefined }) {
  const named: Record<string, number | undefined> = { ...cost, cached_input: cache_read }
  const out: { [name in (typeof FIGURES)[number]]?: number } = {}
  for (const name of FIGURES) {
    const value = named[name]
    if (value !== undefined) out[name] = value
  }
  return out
}

/** The start of the day, or of the month, in UTC. */
function secondsOf(date: string): number {
  const [year = 0, month = 1, day = 1] = date.split('-').map(Number)
  return Date.UTC(year, month - 1, day) / 1000
}

function readLocal(from: string, cwd: string): { text: string; as_of: string } {
  const path = resolve(cwd, from)
  try {
    const { size, mtimeMs } = statSync(path)
    if (size > MAX_BYTES) throw new Error(`it has ${size} bytes; the limit is ${MAX_BYTES}`)
    return { text: readFileSync(path, 'utf8'), as_of: dayOf(mtimeMs) }
  } catch (error) {
    throw new Error(`${from} cannot be read: ${whyUnreadable(error)}`)
  }
}

/** Seconds; enough for a few megabytes over a slow connection. */
const TIMEOUTS = { connect_seconds: 10, first_byte_seconds: 30, idle_seconds: 30, total_seconds: 120 }

async function fetched(from: string, { environment, err }: Terminal): Promise<{ text: string; as_of: string }> {
  const address = URL.parse(from)
  if (!address || address.username || address.password) {
    throw new Error('--from: must be a file, or an http or https address without a user name or password')
  }
  const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: err })
  const transport = createTransport({ clock: systemClock, log, environment })
  try {
    const answer = await transport.send({
      provider: address.host,
      url: address.href,
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'gatehouse' },
      signal: new AbortController().signal,
      timeouts: TIMEOUTS,
      stream: false,
    })
    if (answer.status !== 200) throw refusedWith(answer)
    const changed = Date.parse(answer.headers.get('last-modified') ?? '')
    return { text: await answer.text(MAX_BYTES), as_of: dayOf(Number.isNaN(changed) ? Date.now() : changed) }
  } catch (error) {
    const isOffline = error instanceof GatewayError && NO_CONNECTION.includes(error.code)
    const advice = isOffline ? `\n${offlineAdvice(from)}` : ''
    throw new Error(`${from} could not be read: ${(error as Error).message}${advice}`)
  }
}

function refusedWith(answer: UpstreamResponse): Error {
  const location = answer.headers.get('location')
  answer.drop()
  const elsewhere = answer.status >= 300 && answer.status < 400 && location !== null
  return new Error(`the server returned HTTP ${answer.status}${elsewhere ? `, a redirect to ${location}` : ''}`)
}

const NO_CONNECTION: readonly string[] = ['upstream_unreachable', 'upstream_timeout'] satisfies ErrorCode[]

const offlineAdvice = (from: string): string =>
  `Without a connection, fetch it elsewhere (curl -o api.json ${from}) and use: gatehouse models import --from api.json`

/** A wrong clock must not date the data in the future. */
const dayOf = (ms: number): string => new Date(Math.min(ms, Date.now())).toISOString().slice(0, 10)

const recordOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined

function refuse(from: string, path: string[], expected: string, found: unknown): never {
  const place = path.length === 0 ? '' : `${placeName(path)}: `
  throw new Error(`${from}: ${place}found ${foundText(found)}, must be ${expected}`)
}

/** Removes nulls, which some sources write for missing values. */
function withoutNulls(value: unknown): unknown {
  const record = recordOf(value)
  if (!record) return value
  const entries = Object.entries(record).filter(([, inner]) => inner !== null)
  return Object.fromEntries(entries.map(([name, inner]) => [name, withoutNulls(inner)]))
}
