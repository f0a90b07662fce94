/** Amazon Bedrock: its Converse API, embeddings, rerankers and Nova Canvas, by a key or by requests signed with an access key. */
import { isRecord } from '../../../kit/json.ts'
import { POLICY_WORDING } from '../../orders/order-messages.ts'
import { type AdapterParts, readOptions } from '../../settings.ts'
import type { ChatFamily } from '../chat/chat-family.ts'
import type { ImageFamily, ImageResult } from '../images/image-family.ts'
import { COHERE_INPUT_TYPES, type EmbeddingOptions } from '../text-families.ts'
import { type AiSdkVendor, vendor } from '../vendor-row.ts'
import { filtered, messageIn } from './response-values.ts'

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
export function amazonBedrock(parts: AdapterParts): AiSdkVendor {
  const { id, config, environment = {} } = parts
  const { options, wrong } = readOptions(parts, 'amazon-bedrock', OPTIONS)
  const optionOf = (name: Option): string | undefined => {
    const value = options[name]
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      throw wrong(name, 'a text that is not empty')
    }
    return value === undefined ? undefined : String(value)
  }
  const { region: variable } = ENVIRONMENT
  const region = optionOf('region') ?? environment[variable] ?? environment.AWS_DEFAULT_REGION ?? DEFAULT_REGION
  if (!/^[a-z0-9-]+$/.test(region)) throw wrong('region', `one such as ${DEFAULT_REGION}`)
  const credentials = credentialsOf(optionOf, environment)
  // The configuration of this provider wins over the environment.
  const key =
    config.key ?? optionOf('apiKey') ?? (credentials?.isConfigured ? undefined : environment[ENVIRONMENT.apiKey])
  if (!key && !credentials && config.base_url === undefined) {
    throw new Error(
      `providers.${id} needs a key (of Bedrock), or options.accessKeyId and options.secretAccessKey, or ` +
        'AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
  }
  // A signature covers the host, so the package must know the URL that is really called.
  const configured = config.base_url?.replace(/\/+$/, '')
  const signing = credentials?.signing
  return vendor({
    baseUrl: configured ?? baseUrlOf(region),
    keyVariables: [],
    ...(key ? { key } : {}),
    needsNoKey: true,
    namespace: 'amazonBedrock',
    async load({ key: given, fetch, baseUrl }) {
      const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
      // An empty key keeps the package from reading one in the process's environment.
      const access = key || !signing ? { apiKey: given } : { apiKey: ' ', ...signing }
      return createAmazonBedrock({ region, baseURL: baseUrl, fetch, ...access })
    },
    chat: { factory: (sdk) => sdk, ...CHAT },
    embeddings: {
      factory: (sdk) => sdk.embedding,
      maxInputs: (model) => (COHERE.test(model) ? 96 : 1),
      options: embeddingOptions,
    },
    images: { factory: (sdk) => sdk.image, ...IMAGES },
    rerank: { factory: (sdk) => sdk.reranking, baseUrl: configured ?? baseUrlOf(region, 'bedrock-agent-runtime') },
  })
}

const CHAT: ChatFamily = {
  options: { service_tier: 'serviceTier' },
  noUsage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  thinking: ({ budget, enabled }) => ({
    reasoningConfig: !enabled
      ? { type: 'disabled' }
      : budget && budget > 0
        ? { type: 'enabled', budgetTokens: budget }
        : { type: 'adaptive' },
  }),
  reasoningHistory: 'signed',
  signature: {
    origin: 'messages-compat',
    shown: 'signature',
    hidden: ['redactedContent', 'redactedData'],
    models: /anthropic|claude/,
  },
  jsonByPrompt: true,
  needsTools: true,
  noReasoningWithForcedTools: /anthropic|claude/,
  systemFirst: true,
  media: 'bytes',
}

const COHERE = /cohere\.embed-/

/** Three families of models, each with its own options. */
function embeddingOptions(model: string): EmbeddingOptions {
  if (COHERE.test(model)) {
    const input_type = { option: 'inputType', values: COHERE_INPUT_TYPES, default: 'document' as const }
    return { dimensions: 'outputDimension', input_type }
  }
  if (/amazon\.nova-.*embed/.test(model)) {
    const values = { query: 'TEXT_RETRIEVAL', document: 'GENERIC_INDEX' }
    return { dimensions: 'embeddingDimension', input_type: { option: 'embeddingPurpose', values } }
  }
  return { dimensions: 'dimensions' }
}

const QUALITIES: Record<string, string> = {
  low: 'standard',
  medium: 'standard',
  auto: 'standard',
  high: 'premium',
  hd: 'premium',
}

/** Nova Canvas, and models with the same API. */
const IMAGES: ImageFamily = {
  operations: ['generate', 'edit', 'variation'],
  shape: () => ({ by: 'size' }),
  edits: () => ({ max: 5, mask: 'black' }),
  media: 'bytes',
  options: { negative_prompt: 'negativeText', quality: 'quality', style: 'style' },
  hasSeed: true,
  // It has two qualities.
  moreOptions: ({ quality }) => (quality === undefined ? {} : { quality: QUALITIES[quality] ?? quality }),
  classifyError: (payload, status) =>
    status === 400 && POLICY_WORDING.test(messageIn(payload)) ? 'policy' : undefined,
  read: readNova,
}

/** Its filter removes images one by one, and reports it beside the remaining ones. */
function readNova(payload: unknown): ImageResult | undefined {
  if (!isRecord(payload)) return undefined
  const list = Array.isArray(payload.images) ? payload.images : []
  const images = list.flatMap((one) => (typeof one === 'string' && one !== '' ? [{ base64: one }] : []))
  if (images.length > 0) return { images }
  const reason = typeof payload.error === 'string' ? payload.error : ''
  if (reason === '') return Array.isArray(payload.images) ? { images: [] } : undefined
  return /block|polic|moderat|responsible/i.test(reason) ? filtered(reason) : { failure: { reason } }
}

type Signing = { accessKeyId: string; secretAccessKey: string; sessionToken?: string }

/** The configured pair, or the environment's: never half of each. */
function credentialsOf(
  optionOf: (name: Option) => string | undefined,
  environment: Record<string, string | undefined>,
) {
  const pairFrom = (read: (name: Option) => string | undefined): Signing | undefined => {
    const [accessKeyId, secretAccessKey, sessionToken] = [
      read('accessKeyId'),
      read('secretAccessKey'),
      read('sessionToken'),
    ]
    if (!accessKeyId || !secretAccessKey) return undefined
    return { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) }
  }
  const configured = pairFrom(optionOf)
  const signing = configured ?? pairFrom((name) => environment[ENVIRONMENT[name]])
  return signing && { signing, isConfigured: configured !== undefined }
}

const SUFFIXES: [prefix: string, suffix: string][] = [
  ['cn-', 'amazonaws.com.cn'],
  ['eusc-', 'amazonaws.eu'],
]

function baseUrlOf(region: string, service = 'bedrock-runtime'): string {
  const suffix = SUFFIXES.find(([prefix]) => region.startsWith(prefix))?.[1] ?? 'amazonaws.com'
  return `https://${service}.${region}.${suffix}`
}
