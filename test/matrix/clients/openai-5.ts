/** `openai` 5 on chat completions. */
import type OpenAI from 'openai'
import OpenAI5 from 'openai-5'
import type { Row } from '../types.ts'
import { openaiChat } from './openai-chat.ts'

export const openai5: Row = {
  name: '`openai` 5, chat',
  packages: ['openai-5'],
  base: '/v1',
  dialect: 'chatcompat',
  unsupported: ['stop_sequence'],
  // The types used here are the same in both majors, which TypeScript cannot know.
  connect: (gateway) => openaiChat(OpenAI5 as unknown as typeof OpenAI, gateway),
}
