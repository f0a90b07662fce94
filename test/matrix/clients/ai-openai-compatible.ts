/** `ai` with `@ai-sdk/openai-compatible`. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenAICompatible as createOpenAICompatible1 } from 'ai-sdk-openai-compatible-1'
import { createOpenAICompatible as createOpenAICompatible2 } from 'ai-sdk-openai-compatible-2'
import { aiRows } from './ai-rows.ts'

export const aiOpenaiCompatible = aiRows({
  name: '`@ai-sdk/openai-compatible`',
  majors: [
    ['@ai-sdk/openai-compatible', createOpenAICompatible],
    ['ai-sdk-openai-compatible-2', createOpenAICompatible2],
    ['ai-sdk-openai-compatible-1', createOpenAICompatible1],
  ],
  base: '/v1',
  dialect: 'chatcompat',
  unsupported: ['stop_sequence'],
  provider(create, { origin, token }) {
    const provider = create({
      name: 'gatehouse',
      baseURL: `${origin}/v1`,
      apiKey: token,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })
    return { model: (id) => provider.chatModel(id), thinking: { gatehouse: { reasoningEffort: 'high' } } }
  },
})
