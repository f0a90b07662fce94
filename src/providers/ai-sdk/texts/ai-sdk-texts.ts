/** One adapter for every vendor of embeddings and rerankers that has an AI SDK package with `doEmbed` and `doRerank`. */

import { parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { EmbeddingCall, EmbeddingProvider, Provider, RerankProvider } from '../../provider.ts'
import { readBilledUnits, readTokenCount, toVendorInputType } from '../../text-api.ts'
import { createTransportFetch, type PackageFetch } from '../../upstream/transport-fetch.ts'
import { accountOf, isOwn, moved } from '../account.ts'
import type { AiSdkParts } from '../vendor.ts'
import { faultOf } from './fault.ts'
import type { EmbeddingWords, OwnOptions, TextVendor } from './vendor.ts'

/** Packages look into the process's environment for a key when they are given none. */
const UNUSED_KEY = 'gatehouse-has-no-key'
const NO_WORDS: EmbeddingWords = {}

/** Throws an Error that names the provider when its configuration cannot work. */
export function aiSdkTexts(parts: AiSdkParts, vendor: TextVendor): Pick<Provider, 'embeddings' | 'rerank'> {
  const { id, config, transport, clock, log } = parts
  const given = config.base_url === undefined ? {} : { base_url: vendor.textUrl?.(config.base_url) ?? config.base_url }
  const account = accountOf({ ...parts, config: { ...config, ...given } }, vendor)
  const key = account.key || UNUSED_KEY

  type Asked = { model: string; request_id: string }

  /** One call of a package's method, with its fetch over our transport. */
  async function call<Answer>(
    { model, request_id }: Asked,
    signal: AbortSignal,
    work: { words: EmbeddingWords; ask(at: { key: string; fetch: PackageFetch }): Promise<Answer> },
  ): Promise<{ answer: Answer; payload: unknown }> {
    const authorization = await vendor.authorize?.(signal)
    const { fetch, wire } = createTransportFetch({
      provider: id,
      transport,
      timeouts: account.timeouts,
      signal,
      isOrder: false,
      route(asked) {
        const { url, headers } = vendor.send?.(asked, model) ?? asked
        const target = moved(url, vendor.home, account.base_url)
        if (!isOwn(target, account, vendor)) return undefined
        const own = { 'x-request-id': request_id, ...account.headers, ...authorization }
        return { url: target, headers: { ...presented(headers), ...own } }
      },
    })
    try {
      const answer = await work.ask({ key, fetch })
      return { answer, payload: parseJson(wire.response?.text ?? '') }
    } catch (thrown) {
      const error = faultOf(thrown, wire, { provider: id, model, clock, words: work.words })
      if (error.status >= 500 && error.code !== 'internal_error') {
        log.warn('upstream failed', {
          provider: id,
          model,
          error: error.code,
          upstream_status: error.detail.upstream_status,
        })
      }
      throw error
    }
  }

  function embeddings({ load, most_inputs, most_tokens, words, takesTokens }: NonNullable<TextVendor['embedding']>) {
    const provider: EmbeddingProvider = {
      max_inputs: most_inputs,
      ...(most_tokens ? { max_tokens: most_tokens } : {}),
      accepts_tokens: takesTokens === true,
      async embed({ model, inputs, request, request_id }, signal) {
        const said = words(model)
        const options = spoken(request, { id, model, words: said })
        const { answer, payload } = await call({ model, request_id }, signal, {
          words: said,
          ask: async (at) =>
            (await load(at))(model).doEmbed({
              // Packages hand on what they are given, token numbers too.
              values: inputs as string[],
              abortSignal: signal,
              providerOptions: { [vendor.namespace]: options },
            }),
        })
        // NaN is what one of them makes of a count that is not there.
        const tokens = answer.usage && answer.usage.tokens > 0 ? answer.usage.tokens : readTokenCount(payload)
        return { embeddings: answer.embeddings, ...(tokens === undefined ? {} : { prompt_tokens: tokens }) }
      },
    }
    return provider
  }

  function rerank({ load, max_tokens_per_doc: option }: NonNullable<TextVendor['reranking']>) {
    const provider: RerankProvider = {
      async rerank({ model, query, documents, top_n, max_tokens_per_doc, request_id }, signal) {
        const own: OwnOptions = option !== undefined && max_tokens_per_doc ? { [option]: max_tokens_per_doc } : {}
        const { answer, payload } = await call({ model, request_id }, signal, {
          words: NO_WORDS,
          ask: async (at) =>
            (await load(at))(model).doRerank({
              documents: { type: 'text', values: documents },
              query,
              topN: top_n,
              abortSignal: signal,
              providerOptions: { [vendor.namespace]: own },
            }),
        })
        const results = answer.ranking.map(({ index, relevanceScore }) => ({ index, relevance_score: relevanceScore }))
        return { results, ...readBilledUnits(payload) }
      },
    }
    return provider
  }

  return {
    ...(vendor.embedding ? { embeddings: embeddings(vendor.embedding) } : {}),
    ...(vendor.reranking ? { rerank: rerank(vendor.reranking) } : {}),
  }
}

type Speaker = { id: string; model: string; words: EmbeddingWords }

/** The request in the package's words. What tells only how texts are used is left out where it cannot be told. */
function spoken({ dimensions, input_type, user }: EmbeddingCall['request'], { id, model, words }: Speaker) {
  const options: OwnOptions = {}
  if (dimensions !== undefined && words.dimensions === undefined) {
    throw new GatewayError(
      'unsupported_parameter',
      `The model "${model}" of "${id}" has vectors of one length only: "dimensions" cannot be set.`,
      { param: 'dimensions' },
    )
  }
  if (dimensions !== undefined && words.dimensions) options[words.dimensions] = dimensions
  const type = words.input_type
  const told = input_type ?? type?.default
  if (type && told !== undefined) options[type.option] = toVendorInputType(told, type.words)
  if (words.user && user !== undefined) options[words.user] = user
  return options
}

const presented = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => !value.includes(UNUSED_KEY)))
