/** `ai` with `@openrouter/ai-sdk-provider`. */
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import type { Row } from '../types.ts'
import { ai } from './ai.ts'

export const aiOpenrouter: Row = {
  name: '`ai` 7, `@openrouter/ai-sdk-provider`',
  packages: ['ai', '@openrouter/ai-sdk-provider'],
  base: '/v1',
  dialect: 'chatcompat',
  unsupported: ['stop_sequence'],
  connect({ origin, token }) {
    const provider = createOpenRouter({ baseURL: `${origin}/v1`, apiKey: token })
    const thinking = { openrouter: { reasoning: { effort: 'high' } } }
    return ai({ model: (id) => provider.chat(id), thinking })
  },
}
