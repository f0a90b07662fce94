/** `@anthropic-ai/sdk` 1. */
import Anthropic from '@anthropic-ai/sdk'
import type { Row } from '../words.ts'
import { anthropic } from './anthropic.ts'

export const anthropic1: Row = {
  name: '`@anthropic-ai/sdk` 1',
  packages: ['@anthropic-ai/sdk'],
  base: '',
  dialect: 'messages-compat',
  lacks: [],
  connect: (gateway) => anthropic(Anthropic, gateway),
}
