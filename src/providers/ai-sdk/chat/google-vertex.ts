/** Google's cloud (Vertex AI): Gemini, by the same address and credentials as its videos. */
import { googleVertex } from '../google-vertex.ts'
import type { AiSdkParts } from '../vendor.ts'
import type { ChatVendor } from './vendor.ts'

/** Throws an Error that names the provider and says what would be right. */
export function googleVertexChat(parts: AiSdkParts): ChatVendor {
  const { kind, home, key_env, authorize, send } = googleVertex(parts)
  return {
    kind,
    home,
    key_env,
    needsNoKey: true,
    namespace: 'googleVertex',
    async load({ key, fetch }) {
      const { createGoogleVertex } = await import('@ai-sdk/google-vertex')
      // With a key the package asks for no token of its own making; `send` takes it away again.
      return createGoogleVertex({ apiKey: key, baseURL: home, fetch })
    },
    ...(authorize ? { authorize } : {}),
    ...(send ? { send } : {}),
    thinking: ({ budget, enabled }) => ({
      thinkingConfig: { thinkingBudget: budget ?? (enabled ? -1 : 0), includeThoughts: enabled },
    }),
    showsThoughts: { thinkingConfig: { includeThoughts: true } },
    thoughts: 'signed',
    signs: { origin: 'contentgen-compat', shown: 'thoughtSignature' },
    systemInFront: true,
    search: () => ({ tool: { type: 'provider', id: 'google.google_search', name: 'google_search', args: {} } }),
  }
}
