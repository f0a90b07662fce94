/** `@langchain/openai` on responses. */
import type { Row } from '../types.ts'
import { langchain } from './langchain.ts'

export const langchainResponses: Row = {
  name: '`@langchain/openai`, responses',
  packages: ['@langchain/openai'],
  base: '/v1',
  dialect: 'chatcompat-response',
  unsupported: ['stop', 'stop_sequence'],
  connect: (gateway) => langchain({ ...gateway, useResponsesApi: true }),
}
