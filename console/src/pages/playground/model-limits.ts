/** Reads the limits, kinds of input and prices of the chosen models. */
import { useQueries } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import type { AdminModelWithSettings, ModelPrice } from '../../api/types.ts'
import type { ChatUsage } from './chat-types.ts'

type Limit = { minimum?: number; maximum?: number }
export type Limits = Record<string, Limit>
export type ModelFacts = { limits: Limits; capabilities: Record<string, boolean>; price: ModelPrice | null }

const DEFAULTS: Limits = {
  temperature: { minimum: 0, maximum: 2 },
  top_p: { minimum: 0, maximum: 1 },
  max_tokens: { minimum: 1 },
}
const UNKNOWN: ModelFacts = { limits: DEFAULTS, capabilities: {}, price: null }

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

function factsOf({ settings, max_output_tokens, capabilities, price }: AdminModelWithSettings): ModelFacts {
  const limits: Limits = structuredClone(DEFAULTS)
  if (max_output_tokens !== null) limits.max_tokens = { ...limits.max_tokens, maximum: max_output_tokens }
  for (const { path, value } of settings) {
    const [, name = '', end] = /\.limits\.(\w+)\.(minimum|maximum)$/.exec(path) ?? []
    if (typeof value === 'number' && (end === 'minimum' || end === 'maximum'))
      limits[name] = { ...limits[name], [end]: value }
  }
  return { limits, capabilities, price }
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
