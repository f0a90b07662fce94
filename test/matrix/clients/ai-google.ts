/** `ai` with `@ai-sdk/google`. */
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createGoogleGenerativeAI as createGoogle2 } from 'ai-sdk-google-2'
import { createGoogleGenerativeAI as createGoogle3 } from 'ai-sdk-google-3'
import { aiRows } from './ai-rows.ts'

export const aiGoogle = aiRows({
  name: '`@ai-sdk/google`',
  majors: [
    ['@ai-sdk/google', createGoogleGenerativeAI],
    ['ai-sdk-google-3', createGoogle3],
    ['ai-sdk-google-2', createGoogle2],
  ],
  base: '/v1beta',
  dialect: 'contentgen-compat',
  unsupported: ['stop_sequence'],
  provider(create, { origin, token }) {
    const provider = create({ baseURL: `${origin}/v1beta`, apiKey: token })
    const thinking = { google: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } }
    return { model: (id) => provider(id), thinking }
  },
})
