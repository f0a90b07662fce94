/** One rerank request: the model chosen, the documents as texts, the results checked and put in order. */
import type { Context } from '../http/context.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Catalogue, CatalogueModel, Chosen, Target } from '../models/catalogue.ts'
import { firstToAnswer } from '../models/targets.ts'
import { createTextMeter, type RecordTextUse } from '../models/text-meter.ts'
import { GatewayError } from '../spec/error.ts'
import type { RerankRequest } from '../spec/rerank-request.ts'
import type { Caller } from '../spec/token.ts'
import type { TextUsage } from '../spec/usage.ts'
import { textsOf } from './documents.ts'

export type Scored = { index: number; relevance_score: number }
export type Ranked = Chosen & { results: Scored[]; usage: TextUsage; search_units: number }

export type Rerank = {
  /** Throws what stands in the way; at the end of it the request is in the ledger, however it ended. */
  rank(request: RerankRequest, context: Context): Promise<Ranked>
}

type RerankParts = {
  catalogue: Catalogue
  tokenizer: Tokenizer
  record(caller: Caller, model: CatalogueModel): RecordTextUse
}

/** A search unit of Cohere's: one query over up to so many documents. */
const UNIT_DOCUMENTS = 100

export function createRerank({ catalogue, tokenizer, record }: RerankParts): Rerank {
  return {
    async rank(request, context) {
      const { model, requested } = catalogue.require(request.model, 'rerank', context.caller)
      const { note, signal, caller } = context
      note.model = model.id
      const documents = textsOf(request)
      const top_n = Math.min(request.top_n ?? documents.length, documents.length)
      const meter = createTextMeter({
        inputs: [request.query, ...documents],
        tokenizer,
        note,
        record: record(caller, model),
      })
      try {
        const { target, answer } = await firstToAnswer(model.targets, signal, (one) =>
          askOne(one, { request, documents, top_n, context }),
        )
        note.target = `${target.provider.id}/${target.model}`
        return {
          model,
          requested,
          results: answer.results,
          usage: await meter.answered(answer.prompt_tokens),
          search_units: answer.search_units ?? Math.ceil(documents.length / UNIT_DOCUMENTS),
        }
      } catch (thrown) {
        await meter.failed(thrown, signal)
        throw thrown
      }
    },
  }
}

type Work = { request: RerankRequest; documents: string[]; top_n: number; context: Context }

async function askOne({ provider, model }: Target, { request, documents, top_n, context }: Work) {
  if (!provider.rerank) {
    throw new GatewayError('no_available_channel', `The provider "${provider.id}" serves no rerankers.`)
  }
  const { query, max_tokens_per_doc } = request
  const answer = await provider.rerank.rerank(
    {
      model,
      query,
      documents,
      top_n,
      ...(max_tokens_per_doc === undefined ? {} : { max_tokens_per_doc }),
      request_id: context.request_id,
    },
    context.signal,
  )
  return { ...answer, results: bestOf(answer.results, { provider: provider.id, count: documents.length, top_n }) }
}

type Wanted = { provider: string; count: number; top_n: number }

/** The best first, of equal ones the earlier; no more than asked for, each document once. Throws for anything else. */
function bestOf(results: Scored[], { provider, count, top_n }: Wanted): Scored[] {
  const wrong = (what: string) =>
    new GatewayError('bad_upstream_response', `The upstream "${provider}" answered with ${what}.`)
  const seen = new Set<number>()
  for (const { index, relevance_score } of results) {
    if (!Number.isInteger(index) || index < 0 || index >= count)
      throw wrong('the index of a document that was not sent')
    if (seen.has(index)) throw wrong('one document twice')
    if (!Number.isFinite(relevance_score)) throw wrong('a score that is no number')
    seen.add(index)
  }
  if (results.length < top_n) throw wrong(`${results.length} results where ${top_n} were asked for`)
  return results
    .map(({ index, relevance_score }) => ({ index, relevance_score }))
    .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, top_n)
}
