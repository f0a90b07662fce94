/** `ai` with `@ai-sdk/openai` on chat completions. */
import { createOpenAI } from '@ai-sdk/openai'
import type { Row } from '../types.ts'
import { ai } from './ai.ts'

export const aiOpenaiChat: Row = {
  name: '`ai` 7, `@ai-sdk/openai`, chat',
  packages: ['ai', '@ai-sdk/openai'],
  base: '/v1',
  dialect: 'chatcompat',
  // It reads no reasoning from chat completions, so it sends none back.
  unsupported: ['stop_sequence', 'reasoning', 'reasoning_history'],
  connect({ origin, token }) {
    const provider = createOpenAI({ baseURL: `${origin}/v1`, apiKey: token })
    const thinking = { openai: { reasoningEffort: 'high', forceReasoning: true } }
    return ai({ model: (id) => provider.chat(id), thinking })
  },
}
