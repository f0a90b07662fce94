/** `@anthropic-ai/sdk` 0. */
import type Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-sdk-0'
import type { Row } from '../types.ts'
import { anthropic } from './anthropic.ts'

export const anthropic0: Row = {
  name: '`@anthropic-ai/sdk` 0',
  packages: ['anthropic-sdk-0'],
  base: '',
  dialect: 'messages-compat',
  unsupported: [],
  // The types used here are the same in both majors, which TypeScript cannot know.
  connect: (gateway) => anthropic(Anthropic0 as unknown as typeof Anthropic, gateway),
}
