/** `@langchain/openai` on chat completions. */
import type { Row } from '../words.ts'
import { langchain } from './langchain.ts'

export const langchainChat: Row = {
  name: '`@langchain/openai`, chat',
  dialect: 'chatcompat',
  lacks: ['stop_sequence'],
  connect: langchain,
}
