/** The adapter of each kind, one line each. */
import type { ProviderKind } from '../config/schema/provider-kinds.ts'
import { canonicalJson } from '../kit/json.ts'
import { sha256 } from '../kit/secret.ts'
import type { AiSdkKind } from './ai-sdk/vendors.ts'
import type { BatchProvider } from './batches/batch-provider.ts'
import { createContentgenBatches } from './batches/contentgen-batches.ts'
import { createMessagesBatches } from './batches/messages-batches.ts'
import { createOpenAiBatches } from './batches/openai-batches.ts'
import { audioMembers } from './chatcompat/audio.ts'
import { createChatcompat } from './chatcompat/chatcompat.ts'
import { createCompatImages } from './chatcompat/images.ts'
import { createRerankCompat, textMembers } from './chatcompat/text-providers.ts'
import { createContentgenCompat } from './contentgen-compat/contentgen-compat.ts'
import { contentgenSettings } from './contentgen-compat/contentgen-settings.ts'
import { createContentgenEmbeddings } from './contentgen-compat/embeddings.ts'
import { servesFamily } from './families.ts'
import { createMessagesCompat } from './messages-compat/messages-compat.ts'
import { messagesSettings } from './messages-compat/messages-settings.ts'
import { PRESETS, type Preset, type TextApi } from './presets.ts'
import type { PassthroughProvider, Provider } from './provider.ts'
import { connectTo, realtimeAddress } from './realtime-connection.ts'
import { createResponsesCompat } from './responses-compat/responses-compat.ts'
import { responsesSettings } from './responses-compat/responses-settings.ts'
import { createLazySandbox } from './sandbox.ts'
import { type AdapterParts, azureSettings, firstOf, settingsOf } from './settings.ts'
import { type DirectAddress, directTo } from './upstream/direct.ts'
import { secretsInConfig, secretsInEnvironment } from './upstream/secret-forms.ts'
import { createScrubbingTransport } from './upstream/transport.ts'

type ProviderParts = AdapterParts & {
  environment: Record<string, string | undefined>
  /** The project's manual, which the sandbox quotes. */
  manual: () => Promise<{ name: string; text: string }[]>
}

type Create = (parts: ProviderParts) => Provider

/** The code of most kinds is loaded with the first provider of the kind: a gateway uses only a few of them. */
const OWN_KINDS: { [kind in Exclude<ProviderKind, AiSdkKind>]: Create } = {
  ark: (parts) => (require('./video/ark.ts') as typeof import('./video/ark.ts')).createArk(parts),
  chatcompat(parts) {
    const settings = settingsOf(parts)
    const images = createCompatImages({ ...parts, settings })
    const audio = audioMembers({ ...parts, settings })
    return { ...createChatcompat({ ...parts, settings }), ...textMembers({ ...parts, settings }), ...audio, images }
  },
  'chatcompat-video': (parts) =>
    (require('./chatcompat/videos.ts') as typeof import('./chatcompat/videos.ts')).createChatcompatVideo(parts),
  'contentgen-compat'(parts) {
    const settings = contentgenSettings(parts)
    const embeddings = createContentgenEmbeddings({ ...parts, settings })
    return { ...createContentgenCompat({ ...parts, settings }), embeddings }
  },
  kling: (parts) => (require('./video/kling.ts') as typeof import('./video/kling.ts')).createKling(parts),
  meshy: (parts) => (require('./three-d/meshy.ts') as typeof import('./three-d/meshy.ts')).createMeshy(parts),
  'messages-compat': (parts) => createMessagesCompat({ ...parts, settings: messagesSettings(parts) }),
  'rerank-compat': (parts) => createRerankCompat({ ...parts, settings: settingsOf(parts) }),
  'responses-compat': (parts) => createResponsesCompat({ ...parts, settings: responsesSettings(parts) }),
  runway: (parts) => (require('./video/runway.ts') as typeof import('./video/runway.ts')).createRunway(parts),
  tripo: (parts) => (require('./three-d/tripo.ts') as typeof import('./three-d/tripo.ts')).createTripo(parts),
  sandbox: ({ id, clock, manual, media }) => createLazySandbox({ id, clock, manual, media }),
}

const isOwn = (kind: ProviderKind): kind is keyof typeof OWN_KINDS => Object.hasOwn(OWN_KINDS, kind)

function create(kind: ProviderKind, parts: ProviderParts): Provider {
  if (isOwn(kind)) return OWN_KINDS[kind](parts)
  return (require('./ai-sdk/ai-sdk.ts') as typeof import('./ai-sdk/ai-sdk.ts')).createAiSdkProvider(kind, parts)
}

/** Creates the provider of a configuration. Throws an Error that names the setting and the valid values. */
export function createProvider(given: ProviderParts): Provider {
  const { config, environment } = given
  const preset = Object.hasOwn(PRESETS, config.preset ?? '') ? PRESETS[config.preset ?? ''] : undefined
  const kind = config.kind ?? preset?.kind ?? 'chatcompat'
  const secrets = [...secretsInConfig(config), ...secretsInEnvironment(kind, environment)]
  const transport = createScrubbingTransport(given.transport, secrets)
  const parts = { ...given, transport }
  const provider = create(kind, parts)
  const whole =
    preset && kind === (preset.kind ?? 'chatcompat') ? { ...provider, ...otherKindMembers(preset, parts) } : provider
  const { applies_to = 'limited_tokens', allow = [] } = parts.config.passthrough ?? {}
  const otherPassthroughs = whole.chat ? passthroughsOf(kind, preset, parts) : []
  const { calls } = parts.config
  const realtime = realtimeAddress(kind, parts)
  const batches = batchesOf(kind, parts)
  const { preset: named, base_url, headers, fields, options } = config
  const ruled = {
    ...whole,
    destination: sha256(canonicalJson({ kind, named, base_url, headers, fields, options })).slice(0, 16),
    ...(realtime ? { realtime: connectTo({ ...parts, scrub: transport.scrub }, realtime) } : {}),
    ...(batches ? { batches } : {}),
    ...(calls ? { callLimits: calls } : {}),
    ...(config.fields?.allow ? { forwarded_fields: config.fields.allow } : {}),
    ...(preset?.takes_routing_fields || isRoutingHost(config.base_url) ? { takes_routing_fields: true as const } : {}),
    ...(otherPassthroughs.length > 0 ? { otherPassthroughs } : {}),
    ...(config.passthrough_paths ? { direct: directTo(parts, addressOf(kind, parts)) } : {}),
    passthroughRules: { applies_to, allow },
    watchDeltas: transport.watchDeltas,
  }
  return ruled.listModels ? { ...ruled, listModels: onlyServed(ruled, ruled.listModels) } : ruled
}

/** Batches of the vendor; undefined where its API has none that the gateway knows. */
function batchesOf(kind: ProviderKind, parts: ProviderParts): BatchProvider | undefined {
  switch (kind) {
    case 'chatcompat':
    case 'responses-compat':
      return createOpenAiBatches({ ...parts, address: addressOf(kind, parts) })
    case 'azure':
      return createOpenAiBatches({ ...parts, address: azureSettings(parts), isAzure: true })
    case 'messages-compat':
      return createMessagesBatches({ ...parts, address: messagesSettings(parts) })
    case 'contentgen-compat':
      return createContentgenBatches({ ...parts, address: contentgenSettings(parts) })
    default:
      return undefined
  }
}

/** Where requests to paths by name are sent, with the headers and the key of the kind. Throws an Error for any other kind. */
function addressOf(kind: ProviderKind, parts: ProviderParts): DirectAddress {
  switch (kind) {
    case 'chatcompat':
    case 'chatcompat-video':
    case 'rerank-compat':
      return settingsOf(parts)
    case 'responses-compat':
      return responsesSettings(parts)
    case 'messages-compat': // its base URL as it is written, with the version
      return { ...messagesSettings(parts), base_url: settingsOf(parts).base_url }
    case 'contentgen-compat':
      return contentgenSettings(parts)
    default:
      throw new Error(
        `providers.${parts.id}.passthrough_paths: the kind ${kind} has none; add a provider without a kind, with base_url and key, or with the key in headers`,
      )
  }
}

/** Whether a base URL without a preset is that of a preset whose API routes by itself. */
const isRoutingHost = (base_url: string | undefined): boolean =>
  base_url !== undefined &&
  Object.values(PRESETS).some(
    (one) => one.takes_routing_fields && URL.parse(one.base_url)?.host === URL.parse(base_url)?.host,
  )

type ListModels = NonNullable<Provider['listModels']>

/** Filters out models that only another API of the provider serves. */
const onlyServed =
  (provider: Provider, listModels: ListModels): ListModels =>
  async (signal) =>
    (await listModels(signal)).filter(({ families }) => families?.some((one) => servesFamily(provider, one)) ?? true)

/** The passthrough of the further APIs that the operator names, or the preset at its own base URL. */
function passthroughsOf(kind: ProviderKind, preset: Preset | undefined, parts: ProviderParts): PassthroughProvider[] {
  const { apis, base_url, options: _, ...config } = parts.config
  const known = base_url === undefined ? (preset?.apis ?? {}) : {}
  const served = apis ?? (Object.keys(known) as TextApi[])
  return served.flatMap((api) => {
    if (api === kind) return []
    const address = known[api] ?? base_url ?? preset?.base_url
    const own = { ...config, kind: api, ...(address === undefined ? {} : { base_url: address }) }
    return create(api, { ...parts, config: own }).passthrough ?? []
  })
}

/** The families that the same vendor serves by another kind, at its own base URL: none where another URL is configured. */
function otherKindMembers(
  { video, images, key_env }: Preset,
  parts: ProviderParts,
): Pick<Provider, 'video' | 'images'> {
  const { config, environment } = parts
  const key = config.key ?? firstOf(environment, key_env)
  if (!key || config.base_url !== undefined) return {}
  const { timeouts, options } = config
  const as = (kind: ProviderKind) =>
    create(kind, {
      ...parts,
      config: { kind, key, ...(timeouts ? { timeouts } : {}), ...(options ? { options } : {}) },
    })
  const videoMember = video && as(video).video
  const imageMember = images && as(images).images
  return { ...(videoMember ? { video: videoMember } : {}), ...(imageMember ? { images: imageMember } : {}) }
}
