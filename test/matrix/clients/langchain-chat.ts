/** `@langchain/openai` on chat completions. */
import type { Row } from '../words.ts'
import { langchain } from './langchain.ts'

export const langchainChat: Row = {
  name: '`@langchain/openai`, chat',
  packages: ['@langchain/openai'],
  base: '/v1',
  dialect: 'chatcompat',
  lacks: ['stop_sequence'],
  connect: langchain,
}
