/** One adapter for every vendor of embeddings that has an AI SDK package with `doEmbed`. */
import { parseJson } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { EmbeddingCall, EmbeddingProvider } from '../provider.ts'
import { readTokenCount, toVendorInputType } from '../text-api.ts'
import type { Connection } from './connection.ts'
import { createPackageErrors } from './errors.ts'
import type { EmbeddingFamily, EmbeddingModel, EmbeddingOptions, OwnOptions } from './text-families.ts'

export function createAiSdkEmbeddings(connection: Connection<EmbeddingFamily, EmbeddingModel>): EmbeddingProvider {
  const { id, vendor } = connection
  const errors = createPackageErrors(connection)
  return {
    max_inputs: vendor.maxInputs,
    ...(vendor.maxTokens ? { max_tokens: vendor.maxTokens } : {}),
    accepts_tokens: vendor.acceptsTokens === true,
    async embed({ model, inputs, request, request_id }, signal) {
      const options = vendor.options(model)
      const own = ownOptions(request, options, { id, model })
      const { fetch, wire } = await connection.fetchFor({ model, signal, request_id })
      try {
        const sdk = await connection.model(model, fetch)
        const { embeddings, usage } = await sdk.doEmbed({
          // Packages pass on what they are given, token numbers too.
          values: inputs as string[],
          abortSignal: signal,
          providerOptions: { [vendor.namespace]: own },
        })
        // One package makes NaN of an absent count.
        const tokens = usage && usage.tokens > 0 ? usage.tokens : readTokenCount(parseJson(wire.response?.text ?? ''))
        return { embeddings, ...(tokens === undefined ? {} : { prompt_tokens: tokens }) }
      } catch (thrown) {
        const fieldOf = (option: string) => FIELDS.find((field) => optionOf(options, field) === option)
        throw errors.thrown(thrown, wire, { model, fields: { fieldOf } })
      }
    },
  }
}

const FIELDS = ['dimensions', 'input_type'] as const

const optionOf = ({ dimensions, input_type }: EmbeddingOptions, field: (typeof FIELDS)[number]) =>
  field === 'dimensions' ? dimensions : input_type?.option

/** What only tunes is left out where the model does not support it. */
function ownOptions(
  { dimensions, input_type, user }: EmbeddingCall['request'],
  options: EmbeddingOptions,
  { id, model }: { id: string; model: string },
): OwnOptions {
  const own: OwnOptions = {}
  if (dimensions !== undefined && options.dimensions === undefined) {
    const message = `The model "${model}" of "${id}" has vectors of one length only: "dimensions" cannot be set.`
    throw new GatewayError('unsupported_parameter', message, { param: 'dimensions' })
  }
  if (dimensions !== undefined && options.dimensions) own[options.dimensions] = dimensions
  const type = options.input_type
  const requested = input_type ?? type?.default
  if (type && requested !== undefined) own[type.option] = toVendorInputType(requested, type.values)
  if (options.user && user !== undefined) own[options.user] = user
  return own
}
