/** `@anthropic-ai/sdk` 1. */
import Anthropic from '@anthropic-ai/sdk'
import type { Row } from '../types.ts'
import { anthropic } from './anthropic.ts'

export const anthropic1: Row = {
  name: '`@anthropic-ai/sdk` 1',
  packages: ['@anthropic-ai/sdk'],
  base: '',
  dialect: 'messages-compat',
  unsupported: [],
  connect: (gateway) => anthropic(Anthropic, gateway),
}
