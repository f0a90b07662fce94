/** `ai` with `@ai-sdk/openai` on chat completions. */
import { OPENAI_MAJORS } from './ai-openai-responses.ts'
import { aiRows } from './ai-rows.ts'

export const aiOpenaiChat = aiRows({
  name: '`@ai-sdk/openai`, chat',
  majors: OPENAI_MAJORS,
  base: '/v1',
  dialect: 'chatcompat',
  // It reads no reasoning from chat completions, so it sends none back.
  unsupported: ['stop_sequence', 'reasoning', 'reasoning_history'],
  provider(create, { origin, token }) {
    const provider = create({ baseURL: `${origin}/v1`, apiKey: token })
    const thinking = { openai: { reasoningEffort: 'high', forceReasoning: true } }
    return { model: (id) => provider.chat(id), thinking }
  },
})
