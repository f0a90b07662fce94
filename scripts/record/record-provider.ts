/** Calls one provider with the key of the environment, and turns what it answered into files without secrets. */
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import type { ProviderConfig } from '../../src/config/schema/schema.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { PRESETS } from '../../src/providers/presets.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { createProvider } from '../../src/providers/registry.ts'
import { createTransport } from '../../src/providers/upstream/transport.ts'
import { callsOf, FAMILIES, type Family } from './calls.ts'
import { removeSecrets, secretsIn } from './secrets.ts'

export type RecordRequest = {
  config: ProviderConfig
  model: string
  /** Default: the first that the provider has. */
  family?: Family | undefined
  environment: Record<string, string | undefined>
}

/** `problem` says why there is no text. */
export type RecordedFile = { name: string; status: number; text: string }
export type Recording = { kind: string; family: Family; files: RecordedFile[]; problems: string[] }

type Exchange = { status: number; content_type: string; body: Uint8Array }

const WRONG_KEY = 'invalid-key-for-a-recording'
/** A picture is stored as one pixel: fixtures are for shapes. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const LONG_BASE64 = /"[A-Za-z0-9+/]{2000,}={0,2}"/g

/** Throws an Error when there is no key, or when the provider cannot be made; nothing was sent then. */
export async function recordProvider(request: RecordRequest): Promise<Recording> {
  assertKey(request)
  const { environment, config, model } = request
  const exchanges: Exchange[] = []
  const right = firstProviderOf(request, exchanges)
  const wrong = providerOf({ ...request, config: { ...config, key: WRONG_KEY } }, exchanges)
  const family = request.family ?? FAMILIES.find((name) => right[name] !== undefined)
  if (family === undefined || right[family] === undefined)
    throw new Error(`The kind "${right.kind}" has no ${family ?? FAMILIES.join(', ')}: there is nothing to record.`)
  const secrets = [...secretsIn(environment), WRONG_KEY, ...(config.key === undefined ? [] : [config.key])]
  const recording: Recording = { kind: right.kind, family, files: [], problems: [] }
  try {
    for (const call of callsOf(family, model)) {
      exchanges.length = 0
      const thrown = await call.run(call.key === 'right' ? right : wrong).then(
        () => undefined,
        (error: unknown) => error,
      )
      // Of several requests (a token, a retry) the last one is the call.
      const last = exchanges.at(-1)
      const file = last === undefined ? undefined : fileOf(call.name, last, secrets)
      if (file !== undefined) recording.files.push(file)
      if (file === undefined || (thrown !== undefined && file.status < 400))
        recording.problems.push(
          `${call.name}: ${removeSecrets(thrown ? String(thrown) : 'the body is not text', secrets)}`,
        )
    }
  } finally {
    await right.close?.()
    await wrong.close?.()
  }
  return recording
}

/** Kinds that name their own variables refuse by themselves; others would send a request without a key. */
function assertKey({ config, environment }: RecordRequest): void {
  if (config.kind === 'sandbox') throw new Error('The sandbox is simulated: there is nothing to record.')
  const { key_env = [], local } = PRESETS[config.preset ?? ''] ?? {}
  if (config.key !== undefined || local !== undefined || key_env.some((name) => environment[name])) return
  const isCompatible = config.preset !== undefined || config.kind?.endsWith('compat')
  if (!isCompatible) return
  const names = [...key_env, 'RECORD_KEY'].join(' or ')
  throw new Error(`There is no key for "${config.preset ?? config.kind}": set ${names} in the environment.`)
}

function firstProviderOf(request: RecordRequest, exchanges: Exchange[]): Provider {
  try {
    return providerOf(request, exchanges)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`${why}. For a recording, set such a variable, or RECORD_KEY for the key.`, { cause: error })
  }
}

function providerOf({ config, environment }: RecordRequest, exchanges: Exchange[]): Provider {
  const log = createLog({ clock: systemClock, level: 'error', pretty: false, write: () => {} })
  const transport = createTransport({
    clock: systemClock,
    log,
    environment,
    async fetch(url, init) {
      const response = await fetch(url, init)
      const body = new Uint8Array(await response.arrayBuffer())
      exchanges.push({ status: response.status, content_type: response.headers.get('content-type') ?? '', body })
      return new Response(body, { status: response.status, headers: response.headers })
    },
  })
  return createProvider({
    id: 'recorded',
    config,
    timeouts: DEFAULT_TIMEOUTS,
    transport,
    clock: systemClock,
    log,
    environment,
    manual: async () => [],
  })
}

/** Undefined for a body that is no text: nobody could see what is in it. */
function fileOf(name: string, { status, content_type, body }: Exchange, secrets: string[]): RecordedFile | undefined {
  const text = textOf(body)
  if (text === undefined) return undefined
  const clean = removeSecrets(text.replaceAll(LONG_BASE64, `"${PIXEL}"`), secrets)
  const isStream = content_type.includes('event-stream')
  const extension = isStream ? 'sse' : isJson(clean) ? 'json' : 'txt'
  return { name: `${name}.${extension}`, status, text: clean.endsWith('\n') ? clean : `${clean}\n` }
}

function textOf(body: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
