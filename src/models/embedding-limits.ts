/** The limits of one embedding model, as catalogue data. */
import { rangeText } from '../kit/diagnose.ts'
import type { EmbeddingInput, EmbeddingRequest } from '../spec/embedding-request.ts'
import { GatewayError, invalidValue } from '../spec/error.ts'
import type { CatalogueModel } from './catalogue.ts'

export type EmbeddingOrder = {
  inputs: EmbeddingInput[]
  /** Whether the client sent a list, so that errors name an input by its index. */
  isList: boolean
  request: Pick<EmbeddingRequest, 'dimensions' | 'input_type' | 'user'>
}

/**
 * The request fitted to this model, defaults filled in. Throws for a value that the model does not accept, naming the
 * field and what it may be; nothing is rounded.
 */
export function applyEmbeddingLimits(model: CatalogueModel, request: EmbeddingRequest): EmbeddingOrder {
  const inputs = inputsOf(request.input)
  const isList = Array.isArray(request.input) && typeof request.input[0] !== 'number'
  checkTokens(model, inputs, isList)
  const dimensions = dimensionsOf(model, request)
  const { input_type, user } = request
  return {
    inputs,
    isList,
    request: {
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(input_type === undefined ? {} : { input_type }),
      ...(user === undefined ? {} : { user }),
    },
  }
}

/** One text or one list of token numbers is a list of one. */
function inputsOf(input: EmbeddingRequest['input']): EmbeddingInput[] {
  if (typeof input === 'string') return [input]
  return typeof input[0] === 'number' ? [input as number[]] : (input as EmbeddingInput[])
}

function checkTokens({ id, embeddings }: CatalogueModel, inputs: EmbeddingInput[], isList: boolean): void {
  const { tokens, input_tokens: most } = embeddings
  for (const [index, input] of inputs.entries()) {
    if (typeof input === 'string') return // all are of one kind
    const param = isList ? `input[${index}]` : 'input'
    if (tokens === false) throw tokensUnsupported(id, param)
    if (most === undefined || input.length <= most) continue
    const message = `"${param}" may have at most ${most} tokens for the model "${id}", not ${input.length}.`
    throw new GatewayError('context_length_exceeded', `${message} That is its maximum context length.`, { param })
  }
}

export const tokensUnsupported = (model: string, param: string) =>
  new GatewayError(
    'unsupported_value',
    `The model "${model}" takes no token numbers: "${param}" must be a text. Clients that count tokens can be configured ` +
      'not to, such as `check_embedding_ctx_length=False`.',
    { param },
  )

function dimensionsOf(
  { id, embeddings }: CatalogueModel,
  { dimensions: requested }: EmbeddingRequest,
): number | undefined {
  const { values, minimum, maximum, default: fallback } = embeddings.dimensions ?? {}
  if (requested === undefined) return fallback
  const isInRange = requested >= (minimum ?? requested) && requested <= (maximum ?? requested)
  if (isInRange && (!values || values.includes(requested))) return requested
  const allowed = values
    ? values.length === 1
      ? `${values[0]}`
      : `one of ${values.join(', ')}`
    : rangeText(minimum, maximum)
  throw invalidValue('dimensions', `"dimensions" must be ${allowed} for the model "${id}", not ${requested}.`)
}
