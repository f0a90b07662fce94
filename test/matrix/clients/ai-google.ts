/** `ai` with `@ai-sdk/google`. */
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import type { Row } from '../types.ts'
import { ai } from './ai.ts'

export const aiGoogle: Row = {
  name: '`ai` 7, `@ai-sdk/google`',
  packages: ['ai', '@ai-sdk/google'],
  base: '/v1beta',
  dialect: 'contentgen-compat',
  unsupported: ['stop_sequence'],
  connect({ origin, token }) {
    const provider = createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey: token })
    const thinking = { google: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } }
    return ai({ model: (id) => provider(id), thinking })
  },
}
