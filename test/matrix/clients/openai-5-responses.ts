/** `openai` 5 on responses. */
import type OpenAI from 'openai'
import OpenAI5 from 'openai-5'
import type { Row } from '../types.ts'
import { openaiResponses } from './openai-responses.ts'

export const openai5Responses: Row = {
  name: '`openai` 5, responses',
  packages: ['openai-5'],
  base: '/v1',
  dialect: 'chatcompat-response',
  unsupported: ['stop', 'stop_sequence'],
  // The types used here are the same in both majors, which TypeScript cannot know.
  connect: (gateway) => openaiResponses(OpenAI5 as unknown as typeof OpenAI, gateway),
}
