/** `ai` with `@ai-sdk/openai-compatible`. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Row } from '../types.ts'
import { ai } from './ai.ts'

export const aiOpenaiCompatible: Row = {
  name: '`ai` 7, `@ai-sdk/openai-compatible`',
  packages: ['ai', '@ai-sdk/openai-compatible'],
  base: '/v1',
  dialect: 'chatcompat',
  unsupported: ['stop_sequence'],
  connect({ origin, token }) {
    const provider = createOpenAICompatible({
      name: 'gatehouse',
      baseURL: `${origin}/v1`,
      apiKey: token,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })
    return ai({ model: (id) => provider.chatModel(id), thinking: { gatehouse: { reasoningEffort: 'high' } } })
  },
}
