/** Where the gateway is, how it is spoken to, and what every model of the provider shares. */
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
/** The longest that the gateway holds an answer back. */
const LONGEST_WAIT_SECONDS = 60

export type GatehouseSettings = {
  /** Default: the variable `GATEHOUSE_BASE_URL`, else `http://127.0.0.1:8787/v1`. An address without a path gets `/v1`. */
  baseURL?: string | undefined
  /** A token of the gateway, or a function that gives one. Default: the variable `GATEHOUSE_API_KEY`. */
  apiKey?: Resolvable<string> | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Asks the network in place of the global `fetch`. */
  fetch?: FetchFunction | undefined
  /** How videos and 3D models are waited for; a model may have its own. */
  tasks?: TaskSettings | undefined
}

/** How what takes minutes is waited for. */
export type TaskSettings = {
  /** At least so long from one question to the next. Default 1000. */
  pollIntervalMs?: number | undefined
  /** Gives up waiting after this; the task itself goes on. Default: an hour and ten minutes. */
  timeoutMs?: number | undefined
  /** A call that is aborted has its task canceled too, before it ends. Default: the task goes on. */
  cancelOnAbort?: boolean | undefined
  /** How long a single question for a status may be held back until there is news: 0 to 60 seconds. Default 0. */
  statusWaitSeconds?: number | undefined
  /**
   * How videos are handed out. `url`: as links. `binary`: downloaded. `auto`, the default: as links, unless the AI SDK would
   * refuse to download from there, as it does from a gateway in a private network.
   */
  videoData?: 'auto' | 'url' | 'binary' | undefined
}

export type TaskRules = {
  pollIntervalMs: number
  timeoutMs: number
  cancelOnAbort: boolean
  statusWaitSeconds: number
  videoData: 'auto' | 'url' | 'binary'
}

const DEFAULT_RULES: TaskRules = {
  pollIntervalMs: 1_000,
  // The gateway ends a task after an hour, unless its operator says otherwise.
  timeoutMs: 70 * 60_000,
  cancelOnAbort: false,
  statusWaitSeconds: 0,
  videoData: 'auto',
}

/** Later ones win. Throws InvalidArgumentError for what is out of its bounds. */
export function rulesOf(...settings: (TaskSettings | undefined)[]): TaskRules {
  const rules = { ...DEFAULT_RULES }
  for (const one of settings) Object.assign(rules, withoutUndefined(one ?? {}))
  const refuse = (argument: keyof TaskRules, range: string) =>
    new InvalidArgumentError({ argument, message: `${argument} must be ${range}, not ${rules[argument]}.` })
  if (!(rules.pollIntervalMs >= 0)) throw refuse('pollIntervalMs', 'at least 0')
  if (!(rules.timeoutMs > 0)) throw refuse('timeoutMs', 'more than 0')
  const { statusWaitSeconds: seconds } = rules
  if (!(seconds >= 0 && seconds <= LONGEST_WAIT_SECONDS)) {
    throw refuse('statusWaitSeconds', `from 0 to ${LONGEST_WAIT_SECONDS}`)
  }
  return rules
}

const withoutUndefined = (object: object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

export type Connection = {
  /** The address of a path below the base URL: `/rerank`. */
  url(path: string): string
  /** What every request carries, names in lower case. */
  headers(): Promise<Record<string, string | undefined>>
  /** Names this package to the gateway. */
  fetch: FetchFunction
}

/** The environment is read at each request, so that a provider may be made before it is set. */
export function connect(settings: GatehouseSettings): Connection {
  async function asked(...[input, init]: Parameters<FetchFunction>): Promise<Response> {
    const headers = withUserAgentSuffix(init?.headers, `${PROVIDER}-ai-sdk/${VERSION}`)
    return (settings.fetch ?? globalThis.fetch)(input, { ...init, headers })
  }
  return {
    url: (path) => `${baseUrlOf(settings)}${path}`,
    async headers() {
      const given = settings.apiKey === undefined ? undefined : await resolve(settings.apiKey)
      const key = loadOptionalSetting({ settingValue: given, environmentVariableName: 'GATEHOUSE_API_KEY' })
      return { ...(key ? { authorization: `Bearer ${key}` } : {}), ...lowered(settings.headers) }
    },
    fetch: asked as FetchFunction,
  }
}

function baseUrlOf({ baseURL }: GatehouseSettings): string {
  const given = loadOptionalSetting({
    settingValue: validateBaseURL(baseURL),
    environmentVariableName: 'GATEHOUSE_BASE_URL',
  })
  const text = given?.trim() || DEFAULT_BASE_URL
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const message = `The address of the gateway must be like ${DEFAULT_BASE_URL}, not "${text}".`
    throw new InvalidArgumentError({ argument: 'baseURL', message })
  }
  return url.pathname === '/' ? `${url.origin}/v1` : (withoutTrailingSlash(text) ?? text)
}

/** Two spellings of one name would be sent as two values. */
export const lowered = (headers: Record<string, string | undefined> | undefined): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
