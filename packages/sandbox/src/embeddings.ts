/** The sandbox as an embeddings provider. */
import type { Clock } from '../../../src/kit/clock.ts'
import type { EmbeddingProvider, SimulatedErrors } from '../../../src/providers/provider.ts'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { embedText, embedTokens } from './embed.ts'
import { DEFAULT_DIMENSIONS, MAX_DIMENSIONS, MAX_INPUT_TOKENS } from './models.ts'
import { applyDirectives, parseTextDirectives } from './text-directives.ts'
import { countTokens } from './tokens.ts'

/** About as many as real providers accept in a call; with longer lists one sees how the gateway splits them. */
const MAX_INPUTS = 256
/** After so much text the event loop serves other requests: the work is done in the thread that serves them all. */
const CHARACTERS_PER_TURN = 100_000

export function createSandboxEmbeddings({
  clock,
  errors,
}: {
  clock: Clock
  errors: SimulatedErrors
}): EmbeddingProvider {
  return {
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
      const embeddings: number[][] = []
      let prompt_tokens = 0
      let since = 0
      for (const [index, input] of inputs.entries()) {
        const text = rest[index] ?? ''
        prompt_tokens += countInput(input, index)
        embeddings.push(typeof input === 'string' ? embedText(text, dimensions) : embedTokens(input, dimensions))
        since += input.length
        if (since < CHARACTERS_PER_TURN) continue
        since = 0
        await new Promise((resolve) => setImmediate(resolve))
        signal.throwIfAborted()
      }
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
