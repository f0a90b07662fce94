/** Kind -> adapter, one line each. */
import type { ProviderKind } from '../config/schema.ts'
import { aiSdkImages } from './ai-sdk/images/ai-sdk-images.ts'
import { LUMA_IMAGES } from './ai-sdk/images/vendors.ts'
import { AI_SDK_KINDS } from './ai-sdk/kinds.ts'
import { createArk } from './ark.ts'
import { createChatcompat } from './chatcompat/chatcompat.ts'
import { createCompatImages } from './chatcompat/images.ts'
import { createRerankCompat, textMembers } from './chatcompat/texts.ts'
import { createChatcompatVideo } from './chatcompat-video.ts'
import { createContentgenCompat } from './contentgen-compat/contentgen-compat.ts'
import { createContentgenEmbeddings } from './contentgen-compat/embeddings.ts'
import { contentgenSettings } from './contentgen-compat/settings.ts'
import { createKling } from './kling.ts'
import { createLuma } from './luma.ts'
import { createMeshy } from './meshy.ts'
import { createMessagesCompat } from './messages-compat/messages-compat.ts'
import { messagesSettings } from './messages-compat/settings.ts'
import { PRESETS, type Preset } from './presets.ts'
import type { Provider } from './provider.ts'
import { createResponsesCompat } from './responses-compat/responses-compat.ts'
import { responsesSettings } from './responses-compat/settings.ts'
import { createRunway } from './runway.ts'
import { createSandbox } from './sandbox/sandbox.ts'
import { settingsOf } from './settings.ts'
import { createTripo } from './tripo.ts'
import type { VendorParts } from './vendor-parts.ts'

export type ProviderParts = VendorParts & {
  environment: Record<string, string | undefined>
  /** The project's manual, which the sandbox answers from. */
  manual: () => Promise<{ name: string; text: string }[]>
}

const KINDS: { [kind in ProviderKind]: (parts: ProviderParts) => Provider } = {
  ...AI_SDK_KINDS,
  chatcompat(parts) {
    const settings = settingsOf(parts)
    const images = createCompatImages({ ...parts, settings })
    return { ...createChatcompat({ ...parts, settings }), ...textMembers({ ...parts, settings }), images }
  },
  ark: createArk,
  'chatcompat-video': createChatcompatVideo,
  'contentgen-compat'(parts) {
    const settings = contentgenSettings(parts)
    const embeddings = createContentgenEmbeddings({ ...parts, settings })
    return { ...createContentgenCompat({ ...parts, settings }), embeddings }
  },
  kling: createKling,
  luma: (parts) => ({ ...createLuma(parts), ...aiSdkImages(parts, LUMA_IMAGES) }),
  meshy: createMeshy,
  'messages-compat': (parts) => createMessagesCompat({ ...parts, settings: messagesSettings(parts) }),
  'rerank-compat': (parts) => createRerankCompat({ ...parts, settings: settingsOf(parts) }),
  'responses-compat': (parts) => createResponsesCompat({ ...parts, settings: responsesSettings(parts) }),
  runway: createRunway,
  tripo: createTripo,
  sandbox: ({ id, clock, manual, media }) => createSandbox({ id, clock, manual, media }),
}

/** The provider that a configuration describes. Throws an Error that names it and says what would be right. */
export function createProvider(parts: ProviderParts): Provider {
  const preset = Object.hasOwn(PRESETS, parts.config.preset ?? '') ? PRESETS[parts.config.preset ?? ''] : undefined
  const kind = parts.config.kind ?? preset?.kind ?? 'chatcompat'
  const provider = KINDS[kind](parts)
  const whole =
    preset && kind === (preset.kind ?? 'chatcompat') ? { ...provider, ...borrowed(preset, parts) } : provider
  return whole.images || !whole.listModels ? whole : { ...whole, listModels: withoutImages(whole.listModels) }
}

type ListModels = NonNullable<Provider['listModels']>

/** A vendor's list names models that only another of its interfaces serves. */
const withoutImages =
  (listModels: ListModels): ListModels =>
  async (signal) =>
    (await listModels(signal)).filter(({ families }) => !families?.includes('image-generation'))

/** What the same vendor makes by another kind: at its own address there, so not where another one is configured. */
function borrowed({ video, images, key_env }: Preset, parts: ProviderParts): Pick<Provider, 'video' | 'images'> {
  const { config, environment } = parts
  const key = config.key ?? key_env.map((name) => environment[name]).find((value) => value)
  if (!key || config.base_url !== undefined) return {}
  const { timeouts, options } = config
  const as = (kind: ProviderKind) =>
    KINDS[kind]({
      ...parts,
      config: { kind, key, ...(timeouts ? { timeouts } : {}), ...(options ? { options } : {}) },
    })
  const filming = video && as(video).video
  const drawing = images && as(images).images
  return { ...(filming ? { video: filming } : {}), ...(drawing ? { images: drawing } : {}) }
}
