/** What an OpenAI-shaped vendor does with texts besides chat; and kind `rerank-compat`, which does nothing else. */

import type { Provider } from '../provider.ts'
import type { ProviderSettings } from '../settings.ts'
import type { PostParts } from '../upstream/post-json.ts'
import { createCompatEmbeddings } from './embeddings.ts'
import { createCompatModerations } from './moderations.ts'
import { createCompatRerank } from './rerank.ts'

type TextParts = PostParts & { settings: ProviderSettings }

export const textMembers = (parts: TextParts): Pick<Provider, 'embeddings' | 'moderations' | 'rerank'> => ({
  embeddings: createCompatEmbeddings(parts),
  moderations: createCompatModerations(parts),
  ...(parts.settings.quirks.rerank ? { rerank: createCompatRerank(parts) } : {}),
})

export const createRerankCompat = (parts: TextParts): Provider => ({
  id: parts.id,
  kind: 'rerank-compat',
  rerank: createCompatRerank(parts),
})
