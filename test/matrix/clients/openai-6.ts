/** `openai` 6 on chat completions. */
import type OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { Row } from '../types.ts'
import { openaiChat } from './openai-chat.ts'

export const openai6: Row = {
  name: '`openai` 6, chat',
  packages: ['openai-6'],
  base: '/v1',
  dialect: 'chatcompat',
  unsupported: ['stop_sequence'],
  // The types used here are the same in both majors, which TypeScript cannot know.
  connect: (gateway) => openaiChat(OpenAI6 as unknown as typeof OpenAI, gateway),
}
