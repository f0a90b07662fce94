/** `openai` 7 on responses. */
import OpenAI from 'openai'
import type { Row } from '../types.ts'
import { openaiResponses } from './openai-responses.ts'

export const openai7Responses: Row = {
  name: '`openai` 7, responses',
  packages: ['openai'],
  base: '/v1',
  dialect: 'chatcompat-response',
  unsupported: ['stop', 'stop_sequence'],
  connect: (gateway) => openaiResponses(OpenAI, gateway),
}
