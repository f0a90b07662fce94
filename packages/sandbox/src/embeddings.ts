/** The sandbox as an embeddings provider. */
import type { EmbeddingProvider } from '../../../src/providers/provider.ts'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { createEmbedder } from './embedder.ts'
import { DEFAULT_DIMENSIONS, MAX_DIMENSIONS, MAX_INPUT_TOKENS } from './models.ts'
import { applyDirectives, parseTextDirectives, type SimulationParts } from './text-directives.ts'
import { countTokens } from './tokens.ts'

/** About as many as real providers accept in a call; with longer lists one sees how the gateway splits them. */
const MAX_INPUTS = 256

export function createSandboxEmbeddings({ clock, errors }: SimulationParts): EmbeddingProvider & { close(): void } {
  const embedder = createEmbedder({ clock })
  return {
    close: embedder.close,
    max_inputs: () => MAX_INPUTS,
    accepts_tokens: true,
    async embed({ model, inputs, request }, signal) {
      signal.throwIfAborted()
      const { dimensions = DEFAULT_DIMENSIONS } = request
      const texts = inputs.map((input) => (typeof input === 'string' ? input : ''))
      const { rest, directives } = parseTextDirectives(texts, 'input')
      await applyDirectives(directives, { model, clock, errors, signal })
      if (dimensions > MAX_DIMENSIONS) {
        throw invalid(`"dimensions" must be at most ${MAX_DIMENSIONS}.`, 'dimensions')
      }
      const prompt_tokens = inputs.reduce((sum, input, index) => sum + countInput(input, index), 0)
      const prepared = inputs.map((input, index) => (typeof input === 'string' ? (rest[index] ?? '') : input))
      const embeddings = await embedder.embed(prepared, dimensions, signal)
      return { embeddings, ...(directives.usage === 'none' ? {} : { prompt_tokens }) }
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

const invalid = (message: string, param: string) =>
  new GatewayError('upstream_invalid_request', message, { param, upstream_status: 400 })
