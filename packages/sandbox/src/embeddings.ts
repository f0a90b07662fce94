/** The sandbox as an embeddings provider. */
import type { EmbeddingProvider } from '../../../src/providers/provider.ts'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { createEmbedder } from './embedder.ts'
import { invalidRequest } from './invalid-request.ts'
import { DEFAULT_DIMENSIONS, MAX_DIMENSIONS, MAX_INPUT_TOKENS } from './models.ts'
import { applyDirectives, type SimulationParts } from './text-directives.ts'
import { countTokens } from './tokens.ts'

/** About as many as real providers accept in a call; with longer lists one sees how the gateway splits them. */
const MAX_INPUTS = 256

export function createSandboxEmbeddings(parts: SimulationParts): EmbeddingProvider & { close(): void } {
  const embedder = createEmbedder(parts)
  return {
    close: embedder.close,
    max_inputs: () => MAX_INPUTS,
    accepts_tokens: true,
    async embed({ model, inputs, request }, signal) {
      const { dimensions = DEFAULT_DIMENSIONS } = request
      const texts = inputs.map((input) => (typeof input === 'string' ? input : ''))
      const { rest, hasUsage } = await applyDirectives({ texts, param: 'input', model, signal }, parts)
      if (dimensions > MAX_DIMENSIONS) {
        throw invalidRequest(`"dimensions" must be at most ${MAX_DIMENSIONS}.`, 'dimensions')
      }
      const prompt_tokens = inputs.reduce((sum, input, index) => sum + countInput(input, index), 0)
      const prepared = inputs.map((input, index) => (typeof input === 'string' ? (rest[index] ?? '') : input))
      const embeddings = await embedder.embed(prepared, dimensions, signal)
      return { embeddings, ...(hasUsage ? { prompt_tokens } : {}) }
    },
  }
}

function countInput(input: EmbeddingInput, index: number): number {
  const tokens = typeof input === 'string' ? countTokens(input) : input.length
  if (tokens <= MAX_INPUT_TOKENS) return tokens
  throw new GatewayError(
    'context_length_exceeded',
    `An input has ${tokens} tokens; this model's maximum context length is ${MAX_INPUT_TOKENS}.`,
    { param: `input[${index}]`, upstream_status: 400 },
  )
}
