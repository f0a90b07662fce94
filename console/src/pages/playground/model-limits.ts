/** Reads the limits, kinds of input and prices of the chosen models. */
import { useQueries } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import type { AdminModelWithSettings, ModelPrice } from '../../api/types.ts'
import type { ChatUsage } from './chat-types.ts'

type Limit = { minimum?: number; maximum?: number }
export type Limits = Record<string, Limit>
export type ModelFacts = Pick<AdminModelWithSettings, 'capabilities' | 'price' | 'speech'> & { limits: Limits }

const DEFAULTS: Limits = {
  temperature: { minimum: 0, maximum: 2 },
  top_p: { minimum: 0, maximum: 1 },
  max_tokens: { minimum: 1 },
}
const ANY_SPEECH = { characters: null, voices: null, formats: null }
const UNKNOWN: ModelFacts = { limits: DEFAULTS, capabilities: {}, price: null, speech: ANY_SPEECH }

/** Of each model in its place; what is not known yet has the limits of the API. */
export function useModelFacts(models: string[]): ModelFacts[] {
  return useQueries({
    queries: models.map((model) => ({
      queryKey: ['GET /admin/v1/models/{model}', { params: { model } }],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('GET /admin/v1/models/{model}', { params: { model }, signal }),
      enabled: model !== '',
      staleTime: 60_000,
    })),
    combine: (results) => results.map(({ data }) => (data ? factsOf(data) : UNKNOWN)),
  })
}

function factsOf({ settings, max_output_tokens, capabilities, price, speech }: AdminModelWithSettings): ModelFacts {
  const limits: Limits = structuredClone(DEFAULTS)
  if (max_output_tokens !== null) limits.max_tokens = { ...limits.max_tokens, maximum: max_output_tokens }
  for (const { path, value } of settings) {
    const [, name = '', end] = /\.limits\.(\w+)\.(minimum|maximum)$/.exec(path) ?? []
    if (typeof value === 'number' && (end === 'minimum' || end === 'maximum'))
      limits[name] = { ...limits[name], [end]: value }
  }
  return { limits, capabilities, price, speech }
}

const MILLION = 1_000_000

/** By the listed prices of a million tokens; undefined: they are not known. */
export function costOf({ input, cached, output, reasoning }: ChatUsage, price: ModelPrice | null): number | undefined {
  if (price?.input == null || price.output == null) return undefined
  const parts = [
    (input - cached) * price.input,
    cached * (price.cached_input ?? price.input),
    (output - reasoning) * price.output,
    reasoning * (price.reasoning ?? price.output),
  ]
  return parts.reduce((sum, part) => sum + part, 0) / MILLION
}

export type SpokenUnits = { characters: number; input_tokens: number; output_tokens: number }

/** Of a text that was spoken: by its characters, by its tokens, or by both. Null: the price is not known. */
export function speechCost({ characters, input_tokens, output_tokens }: SpokenUnits, price: ModelPrice | null) {
  if (!price) return null
  const { speech_characters, input, output_audio, request } = price
  const tokens = input === null || output_audio === null ? null : input_tokens * input + output_tokens * output_audio
  if (speech_characters === null && tokens === null) return null
  return ((speech_characters ?? 0) * characters + (tokens ?? 0)) / MILLION + (request ?? 0)
}
