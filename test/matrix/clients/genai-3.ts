/** `@google/genai` 3. */
import type { Row } from '../types.ts'
import { GENAI_3, genai } from './genai.ts'

export const genai3: Row = {
  name: '`@google/genai` 3',
  packages: ['@google/genai'],
  base: '',
  dialect: 'contentgen-compat',
  unsupported: ['stop_sequence'],
  connect: (gateway) => genai(GENAI_3, gateway),
}
