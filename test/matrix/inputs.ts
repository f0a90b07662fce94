/** The inputs of the matrix. */
import type { ChatInput, JsonSchema, Picture, Tool } from './types.ts'

export const QUESTION = 'What is Gatehouse?'

export const chatInputOf = (model: string, text = QUESTION): ChatInput => ({ model, turns: [{ role: 'user', text }] })

const oneOf = (name: string, ...values: string[]): JsonSchema => ({
  type: 'object',
  properties: { [name]: { type: 'string', enum: values } },
  required: [name],
  additionalProperties: false,
})

export const TOOLS: Tool[] = [
  { name: 'get_weather', description: 'The weather in a city', parameters: oneOf('city', 'Paris') },
  { name: 'get_time', description: 'The time in a zone', parameters: oneOf('zone', 'Europe/Paris') },
]
/** Names both, so that they are called in parallel. */
export const BOTH_TOOLS = 'Please call get_weather and get_time for me.'
export const CALLS = [
  { name: 'get_weather', args: { city: 'Paris' } },
  { name: 'get_time', args: { zone: 'Europe/Paris' } },
]
export const RESULTS = ['Rain, 12 degrees', 'Half past nine']

export const PLACE: JsonSchema = {
  type: 'object',
  properties: {
    city: { type: 'string', enum: ['Paris'] },
    degrees: { type: 'integer' },
    is_raining: { type: 'boolean' },
  },
  required: ['city', 'degrees', 'is_raining'],
  additionalProperties: false,
}

/** The smallest image: one transparent pixel. */
export const PIXEL: Picture = {
  media_type: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
}
