/** The `openai` package in both majors, for every family. */
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { openaiFault } from '../../clients/openai-chat.ts'
import type { FamilyFault, Gateway } from '../family.ts'

type Sdk = typeof OpenAI

export const openaiOf = (Sdk: Sdk, { origin, token }: Gateway): OpenAI =>
  new Sdk({ baseURL: `${origin}/v1`, apiKey: token, maxRetries: 0, logLevel: 'off' })

export const openaiFamilyFault = (Sdk: Sdk, error: unknown, status: number): FamilyFault => ({
  ...openaiFault(Sdk, error, status),
  ...(error instanceof Sdk.APIError ? { param: error.param } : {}),
})

/** The types used here are the same in both majors, which TypeScript cannot know. */
export const OPENAI_MAJORS: [name: string, packageName: string, Sdk: Sdk][] = [
  ['`openai` 7', 'openai', OpenAI],
  ['`openai` 6', 'openai-6', OpenAI6 as unknown as Sdk],
]
