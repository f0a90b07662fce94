/** `ai` with `@ai-sdk/openai` on responses, which is the default of that provider. */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAI as createOpenAI2 } from 'ai-sdk-openai-2'
import { createOpenAI as createOpenAI3 } from 'ai-sdk-openai-3'
import { aiRows, type ProviderMajor } from './ai-rows.ts'

export const OPENAI_MAJORS: [ProviderMajor<typeof createOpenAI>, ProviderMajor<unknown>, ProviderMajor<unknown>] = [
  ['@ai-sdk/openai', createOpenAI],
  ['ai-sdk-openai-3', createOpenAI3],
  // It has no option for models that reason under another name than OpenAI's, and its schema has no refusals.
  ['ai-sdk-openai-2', createOpenAI2, ['reasoning', 'reasoning_history', 'refusal']],
]

export const aiOpenaiResponses = aiRows({
  name: '`@ai-sdk/openai`, responses',
  majors: OPENAI_MAJORS,
  base: '/v1',
  dialect: 'chatcompat-response',
  unsupported: ['stop', 'stop_sequence'],
  provider(create, { origin, token }) {
    const provider = create({ baseURL: `${origin}/v1`, apiKey: token })
    const thinking = { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true } }
    return { model: (id) => provider(id), thinking }
  },
})
