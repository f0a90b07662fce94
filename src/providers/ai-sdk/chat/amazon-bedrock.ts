/** Amazon Bedrock, by its Converse API: a key of its own, or requests signed with an access key. */
import type { AmazonBedrockProvider } from '@ai-sdk/amazon-bedrock'
import type { Provider } from '../../provider.ts'
import { readOptions } from '../../settings.ts'
import type { PackageFetch } from '../../upstream/transport-fetch.ts'
import type { AiSdkParts } from '../vendor.ts'
import { createAiSdkChat } from './ai-sdk-chat.ts'
import type { ChatVendor } from './vendor.ts'

const OPTIONS = ['region', 'accessKeyId', 'secretAccessKey', 'sessionToken', 'apiKey'] as const
type Option = (typeof OPTIONS)[number]
const ENVIRONMENT: Record<Option, string> = {
  region: 'AWS_REGION',
  accessKeyId: 'AWS_ACCESS_KEY_ID',
  secretAccessKey: 'AWS_SECRET_ACCESS_KEY',
  sessionToken: 'AWS_SESSION_TOKEN',
  apiKey: 'AWS_BEARER_TOKEN_BEDROCK',
}
const DEFAULT_REGION = 'us-east-1'

/** Throws an Error that names the provider and says what would be right. */
export function createAmazonBedrockChat(parts: AiSdkParts): Provider {
  const { vendor, key } = rowOf(parts)
  return createAiSdkChat({ ...parts, config: { ...parts.config, ...(key ? { key } : {}) } }, vendor)
}

type Row = {
  vendor: ChatVendor
  key: string | undefined
  /** The package's provider for the models at an address. */
  open(at: { key: string; fetch: PackageFetch }, baseURL: string): Promise<AmazonBedrockProvider>
  /** Where rerankers are. */
  agentHome: string
}

/** Throws an Error that names the provider and says what would be right. */
export function rowOf(parts: AiSdkParts): Row {
  const { id, config, environment = {} } = parts
  const { options, wrong } = readOptions(parts, 'amazon-bedrock', OPTIONS)
  const told = (name: Option): string | undefined => {
    const value = options[name]
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      throw wrong(name, 'a text that is not empty')
    }
    return value === undefined ? undefined : String(value)
  }
  const region = told('region') ?? environment[ENVIRONMENT.region] ?? environment.AWS_DEFAULT_REGION ?? DEFAULT_REGION
  if (!/^[a-z0-9-]+$/.test(region)) throw wrong('region', `one such as ${DEFAULT_REGION}`)
  const credentials = credentialsOf(told, environment)
  // What is written for this provider wins over what lies in the environment.
  const key = config.key ?? told('apiKey') ?? (credentials?.isWritten ? undefined : environment[ENVIRONMENT.apiKey])
  if (!key && !credentials && config.base_url === undefined) {
    throw new Error(
      `providers.${id} needs a key (of Bedrock), or options.accessKeyId and options.secretAccessKey, or ` +
        'AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
  }
  // A signature names the host, so the package must know the address that is truly asked.
  const home = (config.base_url ?? homeOf(region)).replace(/\/+$/, '')
  const signed = credentials?.signing
  const open: Row['open'] = async ({ key: own, fetch }, baseURL) => {
    const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
    // An empty key keeps the package from looking for one in the process's environment.
    const access = key || !signed ? { apiKey: own } : { apiKey: ' ', ...signed }
    return createAmazonBedrock({ region, baseURL, fetch, ...access })
  }
  const vendor: ChatVendor = {
    kind: 'amazon-bedrock',
    home,
    key_env: [],
    needsNoKey: true,
    namespace: 'amazonBedrock',
    load: (at) => open(at, home),
    options: { service_tier: 'serviceTier' },
    thinking: ({ budget, enabled }) => ({
      reasoningConfig: !enabled
        ? { type: 'disabled' }
        : budget && budget > 0
          ? { type: 'enabled', budgetTokens: budget }
          : { type: 'adaptive' },
    }),
    thoughts: 'signed',
    signs: {
      origin: 'messages-compat',
      shown: 'signature',
      hidden: ['redactedContent', 'redactedData'],
      models: /anthropic|claude/,
    },
    jsonByWords: true,
    needsTools: true,
    barsThinking: /anthropic|claude/,
    systemInFront: true,
    media: 'bytes',
  }
  return { vendor, key, open, agentHome: config.base_url ? home : homeOf(region, 'bedrock-agent-runtime') }
}

type Signing = { accessKeyId: string; secretAccessKey: string; sessionToken?: string }

/** The written pair, or the environment's: never half of each. */
function credentialsOf(told: (name: Option) => string | undefined, environment: Record<string, string | undefined>) {
  const pairFrom = (read: (name: Option) => string | undefined): Signing | undefined => {
    const [accessKeyId, secretAccessKey, sessionToken] = [
      read('accessKeyId'),
      read('secretAccessKey'),
      read('sessionToken'),
    ]
    if (!accessKeyId || !secretAccessKey) return undefined
    return { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) }
  }
  const written = pairFrom(told)
  const signing = written ?? pairFrom((name) => environment[ENVIRONMENT[name]])
  return signing && { signing, isWritten: written !== undefined }
}

const SUFFIXES: [prefix: string, suffix: string][] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
]

function homeOf(region: string, service = 'bedrock-runtime'): string {
  const suffix = SUFFIXES.find(([prefix]) => region.startsWith(prefix))?.[1] ?? 'amazonaws.com'
  return `https://${service}.${region}.${suffix}`
}
