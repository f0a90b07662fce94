/** `openai` 6 on responses. */
import type OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { Row } from '../types.ts'
import { openaiResponses } from './openai-responses.ts'

export const openai6Responses: Row = {
  name: '`openai` 6, responses',
  packages: ['openai-6'],
  base: '/v1',
  dialect: 'chatcompat-response',
  unsupported: ['stop', 'stop_sequence'],
  // The types used here are the same in both majors, which TypeScript cannot know.
  connect: (gateway) => openaiResponses(OpenAI6 as unknown as typeof OpenAI, gateway),
}
