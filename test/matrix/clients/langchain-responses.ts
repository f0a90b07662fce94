/** `@langchain/openai` on responses. */
import type { Row } from '../words.ts'
import { langchain } from './langchain.ts'

export const langchainResponses: Row = {
  name: '`@langchain/openai`, responses',
  packages: ['@langchain/openai'],
  base: '/v1',
  dialect: 'chatcompat-response',
  lacks: ['stop', 'stop_sequence'],
  connect: (gateway) => langchain({ ...gateway, useResponsesApi: true }),
}
