/** `ai` with `@ai-sdk/anthropic`. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createAnthropic as createAnthropic2 } from 'ai-sdk-anthropic-2'
import { createAnthropic as createAnthropic3 } from 'ai-sdk-anthropic-3'
import { aiRows } from './ai-rows.ts'

export const aiAnthropic = aiRows({
  name: '`@ai-sdk/anthropic`',
  majors: [
    ['@ai-sdk/anthropic', createAnthropic],
    ['ai-sdk-anthropic-3', createAnthropic3],
    // It leaves cached tokens out of the input tokens.
    ['ai-sdk-anthropic-2', createAnthropic2, ['cached_input']],
  ],
  base: '/v1',
  dialect: 'messages-compat',
  // It reports both ends as `stop`.
  unsupported: ['stop_sequence'],
  provider(create, { origin, token }) {
    const provider = create({ baseURL: `${origin}/v1`, apiKey: token })
    return {
      model: (id) => provider(id),
      thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
    }
  },
})
