/** `@langchain/openai` on chat completions. */
import type { Row } from '../types.ts'
import { langchain } from './langchain.ts'

export const langchainChat: Row = {
  name: '`@langchain/openai`, chat',
  packages: ['@langchain/openai'],
  base: '/v1',
  dialect: 'chatcompat',
  // It does not send reasoning back.
  unsupported: ['stop_sequence', 'reasoning_history'],
  connect: langchain,
}
