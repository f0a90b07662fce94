/** `@google/genai` 2. */
import { ApiError, GoogleGenAI } from 'google-genai-2'
import type { Row } from '../types.ts'
import { genai, type Package } from './genai.ts'

// The types used here are the same in both majors, which TypeScript cannot know.
const GENAI_2 = { GoogleGenAI, ApiError } as unknown as Package

export const genai2: Row = {
  name: '`@google/genai` 2',
  packages: ['google-genai-2'],
  base: '',
  dialect: 'contentgen-compat',
  unsupported: ['stop_sequence'],
  connect: (gateway) => genai(GENAI_2, gateway),
}
