/** `@google/genai` 1. */
import { ApiError, GoogleGenAI } from 'google-genai-1'
import type { Row } from '../types.ts'
import { genai, type Package } from './genai.ts'

// The types used here are the same in all majors, which TypeScript cannot know.
const GENAI_1 = { GoogleGenAI, ApiError } as unknown as Package

export const genai1: Row = {
  name: '`@google/genai` 1',
  packages: ['google-genai-1'],
  base: '',
  dialect: 'contentgen-compat',
  // It takes an error event for a response without candidates.
  unsupported: ['stop_sequence', 'stream_error'],
  connect: (gateway) => genai(GENAI_1, gateway),
}
