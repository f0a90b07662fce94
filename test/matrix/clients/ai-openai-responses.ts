/** `ai` with `@ai-sdk/openai` on responses, which is the default of that provider. */
import { createOpenAI } from '@ai-sdk/openai'
import type { Row } from '../types.ts'
import { ai } from './ai.ts'

export const aiOpenaiResponses: Row = {
  name: '`ai` 7, `@ai-sdk/openai`, responses',
  packages: ['ai', '@ai-sdk/openai'],
  base: '/v1',
  dialect: 'chatcompat-response',
  unsupported: ['stop', 'stop_sequence'],
  connect({ origin, token }) {
    const provider = createOpenAI({ baseURL: `${origin}/v1`, apiKey: token })
    const thinking = { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true } }
    return ai({ model: (id) => provider(id), thinking })
  },
}
