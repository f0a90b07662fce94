/** One embeddings request: the model chosen, the list split as its vendor wants it, the vectors joined in order. */
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { applyEmbeddingLimits, type EmbeddingOrder, takesNoTokens } from '../models/embedding-limits.ts'
import type { Call } from '../pipeline/call.ts'
import type { Family } from '../pipeline/family.ts'
import { createTextMeter, type TextMeter } from '../pipeline/text-meter.ts'
import type { EmbeddingProvider, Target } from '../providers/provider.ts'
import type { EmbeddingInput, EmbeddingRequest } from '../spec/embedding-request.ts'
import { GatewayError } from '../spec/error.ts'

export type EmbeddingWork = { model: CatalogueModel; order: EmbeddingOrder; targets: Target[] }

export type EmbeddingFamily = Family<EmbeddingRequest, EmbeddingWork, { embeddings: number[][] }, TextMeter>

/** Calls of one request under way at a time: enough to hide the way to the vendor, too few for its rate limit. */
const MOST_CALLS_AT_ONCE = 4
/** All numbers of an answer together: it is held in memory as a whole. The largest that OpenAI gives has 6.3 million. */
const MOST_NUMBERS = 10_000_000

export const createEmbeddings = ({ tokenizer }: { tokenizer: Tokenizer }): EmbeddingFamily => ({
  endpoint: () => 'embeddings',
  modelOf: ({ model }) => model,
  fit(model, request) {
    const order = applyEmbeddingLimits(model, request)
    const targets = targetsFor(model, order)
    if (order.request.dimensions) checkSize(order.inputs.length, order.request.dimensions)
    return { model, order, targets }
  },
  meter: ({ order }) => createTextMeter({ inputs: order.inputs, tokenizer }),
  policy: 'until_answered',
  async execute({ model, order, targets }, { call, meter, attempt }) {
    const answer = await attempt(targets, (target) => allOf(target, { model, order, call }))
    meter.reported(answer.prompt_tokens)
    return answer
  },
})

type Served = { target: Target; provider: EmbeddingProvider }

/** Those that take this kind of input. */
function targetsFor(model: CatalogueModel, { inputs }: EmbeddingOrder): Target[] {
  const serving = model.targets.filter(({ provider }) => provider.embeddings !== undefined)
  if (typeof inputs[0] === 'string') return serving
  const fitting = serving.filter(({ provider }) => model.embeddings.tokens ?? provider.embeddings?.takes_tokens)
  if (fitting.length === 0 && serving.length > 0) throw takesNoTokens(model.id, 'input')
  return fitting
}

function servedBy(target: Target): Served {
  const { embeddings: provider, id } = target.provider
  if (provider) return { target, provider }
  throw new GatewayError('no_available_channel', `The provider "${id}" serves no embedding models.`)
}

type Work = { model: CatalogueModel; order: EmbeddingOrder; call: Call }
type Answer = { embeddings: number[][]; prompt_tokens?: number }

/** The whole list by one target: vectors of different models could not be compared. */
async function allOf(one: Target, { model, order, call }: Work): Promise<Answer> {
  const { target, provider } = servedBy(one)
  const inputs = Math.min(
    model.embeddings.most_inputs ?? Number.POSITIVE_INFINITY,
    provider.most_inputs?.(target.model) ?? Number.POSITIVE_INFINITY,
  )
  const tokens = provider.most_tokens?.(target.model) ?? Number.POSITIVE_INFINITY
  const parts = split(order.inputs, { inputs, tokens })
  const failed = new AbortController()
  const signal = AbortSignal.any([call.signal, failed.signal])
  const answers = await inTurns(parts, async ({ inputs, first }) => {
    const { request } = order
    try {
      const answer = await provider.embed({ model: target.model, inputs, request, request_id: call.request_id }, signal)
      checkVectors(answer.embeddings, { target, count: inputs.length, dimensions: order.request.dimensions })
      checkSize(order.inputs.length, answer.embeddings[0]?.length ?? 0)
      return answer
    } catch (thrown) {
      failed.abort()
      throw placed(thrown, order.isList ? first : undefined)
    }
  })
  const embeddings = answers.flatMap((answer) => answer.embeddings)
  checkVectors(embeddings, { target, count: order.inputs.length, dimensions: order.request.dimensions })
  const counts = answers.map(({ prompt_tokens }) => prompt_tokens)
  const sum = counts.reduce<number | undefined>(
    (total, count) => (total === undefined || count === undefined ? undefined : total + count),
    0,
  )
  return { embeddings, ...(sum === undefined ? {} : { prompt_tokens: sum }) }
}

type Part = { inputs: EmbeddingInput[]; first: number }

/** Into parts with no more inputs and tokens than that; an input that has too many alone is a part of its own. */
function split(inputs: EmbeddingInput[], most: { inputs: number; tokens: number }): Part[] {
  const parts: Part[] = []
  let part: Part = { inputs: [], first: 0 }
  let tokens = 0
  for (const [index, input] of inputs.entries()) {
    const own = most.tokens === Number.POSITIVE_INFINITY ? 0 : mostTokensOf(input)
    if (part.inputs.length > 0 && (part.inputs.length >= most.inputs || tokens + own > most.tokens)) {
      parts.push(part)
      part = { inputs: [], first: index }
      tokens = 0
    }
    part.inputs.push(input)
    tokens += own
  }
  return [...parts, part]
}

/** No vendor's tokenizer makes more tokens of a text than it has bytes. */
const mostTokensOf = (input: EmbeddingInput): number =>
  typeof input === 'string' ? Buffer.byteLength(input) : input.length

/** An error that names an input by its place in a part, with its place in the whole; `first` undefined: no list came. */
function placed(thrown: unknown, first: number | undefined): unknown {
  if (!(thrown instanceof GatewayError)) return thrown
  const { param = '' } = thrown.detail
  const [head, index] = /^input\[(\d+)\]/.exec(param) ?? []
  if (head === undefined) return thrown
  const there = (first === undefined ? 'input' : `input[${first + Number(index)}]`) + param.slice(head.length)
  const message = thrown.message.replaceAll(`"${param}"`, `"${there}"`)
  return new GatewayError(thrown.code, message, { ...thrown.detail, param: there })
}

/** A few at a time, answers in the order of the parts. Throws the first failure, after which none is begun. */
async function inTurns<Part, Done>(parts: Part[], work: (part: Part) => Promise<Done>): Promise<Done[]> {
  const done: Done[] = []
  let next = 0
  /** The first: the others fail because of it. */
  let failure: { thrown: unknown } | undefined
  const hand = async () => {
    while (next < parts.length && !failure) {
      const at = next++
      try {
        done[at] = await work(parts[at] as Part)
      } catch (thrown) {
        failure ??= { thrown }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(MOST_CALLS_AT_ONCE, parts.length) }, hand))
  if (failure) throw failure.thrown
  return done
}

function checkSize(inputs: number, dimensions: number): void {
  if (inputs * dimensions <= MOST_NUMBERS) return
  const most = Math.floor(MOST_NUMBERS / dimensions)
  throw new GatewayError(
    'invalid_value',
    `"input" may have at most ${most} items with vectors of ${dimensions} dimensions, not ${inputs}.`,
    { param: 'input' },
  )
}

type Wanted = { target: Target; count: number; dimensions: number | undefined }

/** A list that is too short, or a vector of another length, would be compared with what it does not belong to. */
function checkVectors(vectors: number[][], { target, count, dimensions }: Wanted): void {
  const wrong = (what: string) =>
    new GatewayError('bad_upstream_response', `The upstream "${target.provider.id}" answered with ${what}.`)
  if (vectors.length !== count) throw wrong(`${vectors.length} vectors for ${count} inputs`)
  const length = dimensions ?? vectors[0]?.length ?? 0
  for (const vector of vectors) {
    if (vector.length === 0) throw wrong('an empty vector')
    if (vector.length !== length) {
      throw wrong(`a vector of ${vector.length} dimensions where ${length} were ${dimensions ? 'asked for' : 'before'}`)
    }
    if (!vector.every(Number.isFinite)) throw wrong('a vector that holds something else than numbers')
  }
}
