/** `ai` with `@ai-sdk/anthropic`. */
import { createAnthropic } from '@ai-sdk/anthropic'
import type { Row } from '../types.ts'
import { ai } from './ai.ts'

export const aiAnthropic: Row = {
  name: '`ai` 7, `@ai-sdk/anthropic`',
  packages: ['ai', '@ai-sdk/anthropic'],
  base: '/v1',
  dialect: 'messages-compat',
  // It reports both ends as `stop`.
  unsupported: ['stop_sequence'],
  connect({ origin, token }) {
    const provider = createAnthropic({ baseURL: `${origin}/v1`, apiKey: token })
    return ai({
      model: (id) => provider(id),
      thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
    })
  },
}
