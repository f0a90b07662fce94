/** `openai` 7 on chat completions. */
import OpenAI from 'openai'
import type { Row } from '../types.ts'
import { openaiChat } from './openai-chat.ts'

export const openai7: Row = {
  name: '`openai` 7, chat',
  packages: ['openai'],
  base: '/v1',
  dialect: 'chatcompat',
  unsupported: ['stop_sequence'],
  connect: (gateway) => openaiChat(OpenAI, gateway),
}
