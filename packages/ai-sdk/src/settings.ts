/** The connection to the gateway, and the settings that all models of the provider share. */
import { InvalidArgumentError } from '@ai-sdk/provider'
import {
  type FetchFunction,
  loadOptionalSetting,
  type Resolvable,
  resolve,
  validateBaseURL,
  withoutTrailingSlash,
  withUserAgentSuffix,
} from '@ai-sdk/provider-utils'

/** The version of this package, as its `package.json` has it. */
export const VERSION = '0.1.0'
export const PROVIDER = 'gatehouse'

const DEFAULT_BASE_URL = 'http://127.0.0.1:8787/v1'
/** The longest time that the gateway holds a response back. */
const MAX_WAIT_SECONDS = 60

export type GatehouseSettings = {
  /** Default: the variable `GATEHOUSE_BASE_URL`, else `http://127.0.0.1:8787/v1`. A URL without a path gets `/v1`. */
  baseURL?: string | undefined
  /** A token of the gateway, or a function that returns one. Default: the variable `GATEHOUSE_API_KEY`. */
  apiKey?: Resolvable<string> | undefined
  headers?: Record<string, string> | undefined
  /** Replaces the global `fetch`. */
  fetch?: FetchFunction | undefined
  /** How to wait for videos and 3D models; a model may have its own settings. */
  tasks?: TaskSettings | undefined
}

export type TaskSettings = {
  /** The shortest time between two polls. Default 1000. */
  pollIntervalMs?: number | undefined
  /** The wait ends after this; the task itself continues. Default: an hour and ten minutes. */
  timeoutMs?: number | undefined
  /** An aborted call cancels its task before it throws. Default: the task continues. */
  cancelOnAbort?: boolean | undefined
  /** How long the gateway may hold back the response to one poll until the state changes: 0 to 60 seconds. Default 0. */
  statusWaitSeconds?: number | undefined
  /**
   * How videos are returned. `url`: as links. `binary`: downloaded. `auto`, the default: as links, unless the AI SDK would
   * refuse to download them, as it does from a gateway in a private network.
   */
  videoData?: 'auto' | 'url' | 'binary' | undefined
}

export type TaskRules = { [name in keyof TaskSettings]-?: NonNullable<TaskSettings[name]> }

const DEFAULT_RULES: TaskRules = {
  pollIntervalMs: 1_000,
  // The gateway ends a task after an hour, unless its operator says otherwise.
  timeoutMs: 70 * 60_000,
  cancelOnAbort: false,
  statusWaitSeconds: 0,
  videoData: 'auto',
}

/** Later settings take precedence. Throws InvalidArgumentError for a value out of range. */
export function rulesOf(...settings: (TaskSettings | undefined)[]): TaskRules {
  const rules = { ...DEFAULT_RULES }
  for (const one of settings) Object.assign(rules, withoutUndefined(one ?? {}))
  const refuse = (argument: keyof TaskRules, range: string) =>
    new InvalidArgumentError({ argument, message: `${argument} must be ${range}, not ${rules[argument]}.` })
  if (!(rules.pollIntervalMs >= 0)) throw refuse('pollIntervalMs', 'at least 0')
  if (!(rules.timeoutMs > 0)) throw refuse('timeoutMs', 'more than 0')
  const { statusWaitSeconds: seconds } = rules
  if (!(seconds >= 0 && seconds <= MAX_WAIT_SECONDS)) {
    throw refuse('statusWaitSeconds', `from 0 to ${MAX_WAIT_SECONDS}`)
  }
  return rules
}

const withoutUndefined = (object: object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

export type Connection = {
  /** The URL of a path below the base URL: `/rerank`. */
  url(path: string): string
  /** Sent with every request, names in lower case. */
  headers(): Promise<Record<string, string | undefined>>
  /** Adds this package to the user agent. */
  fetch: FetchFunction
}

export type ModelParts = { connection: Connection; modelId: string }

/** The environment is read at each request, so a provider may be created before it is set. */
export function connect(settings: GatehouseSettings): Connection {
  async function namedFetch(...[input, init]: Parameters<FetchFunction>): Promise<Response> {
    const headers = withUserAgentSuffix(init?.headers, `${PROVIDER}-ai-sdk/${VERSION}`)
    return (settings.fetch ?? globalThis.fetch)(input, { ...init, headers })
  }
  return {
    url: (path) => `${baseUrlOf(settings)}${path}`,
    async headers() {
      const configured = settings.apiKey === undefined ? undefined : await resolve(settings.apiKey)
      const key = loadOptionalSetting({ settingValue: configured, environmentVariableName: 'GATEHOUSE_API_KEY' })
      return { ...(key ? { authorization: `Bearer ${key}` } : {}), ...lowercased(settings.headers) }
    },
    fetch: namedFetch as FetchFunction,
  }
}

function baseUrlOf({ baseURL }: GatehouseSettings): string {
  const configured = loadOptionalSetting({
    settingValue: validateBaseURL(baseURL),
    environmentVariableName: 'GATEHOUSE_BASE_URL',
  })
  const text = configured?.trim() || DEFAULT_BASE_URL
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const message = `The base URL of the gateway must be like ${DEFAULT_BASE_URL}, not "${text}".`
    throw new InvalidArgumentError({ argument: 'baseURL', message })
  }
  return url.pathname === '/' ? `${url.origin}/v1` : (withoutTrailingSlash(text) ?? text)
}

/** Two spellings of one name would be sent as two values. */
export const lowercased = (
  headers: Record<string, string | undefined> | undefined,
): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
