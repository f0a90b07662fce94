/** The embeddings family: splits the list of inputs as the provider requires, and joins the vectors in order. */
import type { Call } from '../../calls/call.ts'
import type { JsonEndpoint } from '../../calls/endpoint.ts'
import { type Family, jsonCodec } from '../../calls/family.ts'
import { textAt } from '../../calls/guards/content.ts'
import { createTextMeter, estimateTexts, type TextMeter } from '../../calls/text-meter.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { applyEmbeddingLimits, type EmbeddingOrder, tokensUnsupported } from '../../models/embedding-limits.ts'
import { withParam } from '../../protocols/shared/request-error.ts'
import type { Target } from '../../providers/provider.ts'
import type { EmbeddingInput, EmbeddingRequest } from '../../spec/embedding-request.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { partOf } from '../shared/provider-part.ts'

type EmbeddingWork = { model: CatalogueModel; order: EmbeddingOrder; targets: Target[] }

type Embedded = { embeddings: number[][] }
export type EmbeddingFamily = Family<EmbeddingRequest, EmbeddingWork, Embedded, TextMeter>
export type EmbeddingEndpoint = JsonEndpoint<EmbeddingRequest, EmbeddingWork, Embedded, TextMeter>

/** Concurrent upstream calls of one request: enough to hide the latency, few enough for the provider's rate limit. */
const MOST_CALLS_AT_ONCE = 4
/** Numbers in one response, which is held in memory as a whole. OpenAI's largest has 6.3 million. */
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
  estimate: ({ order }) => estimateTexts(order.inputs),
  guarded: {
    input(work) {
      const inputs = [...work.order.inputs]
      if (inputs.some((input) => typeof input !== 'string')) throw tokensUnreadable(work.model.id)
      work.order = { ...work.order, inputs }
      return inputs.flatMap((_, at) => textAt(inputs, at))
    },
  },
  texts: ({ order }) => order.inputs.filter((input) => typeof input === 'string'),
  policy: 'until_answered',
  targets: ({ targets }) => targets,
  async send(target, { model, order }, { call, signal, meter }) {
    const answer = await embedAll(target, { model, order, call, signal })
    meter.reported(answer.prompt_tokens)
    return answer
  },
  cacheable: ({ order: { inputs, request } }) => ({ request: [inputs, request], is_deterministic: true }),
  codec: jsonCodec(),
})

const tokensUnreadable = (model: string) =>
  new GatewayError('unsupported_value', `Guards check the model "${model}": "input" must be text, not token numbers.`, {
    param: 'input',
  })

/** The targets that accept this kind of input. */
function targetsFor(model: CatalogueModel, { inputs }: EmbeddingOrder): Target[] {
  const serving = model.targets.filter(({ provider }) => provider.embeddings !== undefined)
  if (typeof inputs[0] === 'string') return serving
  const fitting = serving.filter(({ provider }) => model.embeddings.tokens ?? provider.embeddings?.accepts_tokens)
  if (fitting.length === 0 && serving.length > 0) throw tokensUnsupported(model.id, 'input')
  return fitting
}

type Work = { model: CatalogueModel; order: EmbeddingOrder; call: Call; signal: AbortSignal }
type Answer = { embeddings: number[][]; prompt_tokens?: number }

/** One target embeds the whole list, since vectors of different models cannot be compared. */
async function embedAll(target: Target, { model, order, call, signal: callSignal }: Work): Promise<Answer> {
  const provider = partOf(target, 'embeddings', 'has no embedding models')
  const inputs = Math.min(
    model.embeddings.most_inputs ?? Number.POSITIVE_INFINITY,
    provider.max_inputs?.(target.model) ?? Number.POSITIVE_INFINITY,
  )
  const tokens = provider.max_tokens?.(target.model) ?? Number.POSITIVE_INFINITY
  const parts = split(order.inputs, { inputs, tokens })
  const failed = new AbortController()
  const signal = AbortSignal.any([callSignal, failed.signal])
  const answers = await runConcurrently(parts, async ({ inputs, first }) => {
    const { request } = order
    try {
      const answer = await provider.embed({ model: target.model, inputs, request, request_id: call.request_id }, signal)
      checkVectors(answer.embeddings, { target, count: inputs.length, dimensions: order.request.dimensions })
      checkSize(order.inputs.length, answer.embeddings[0]?.length ?? 0)
      return answer
    } catch (thrown) {
      failed.abort()
      throw withListIndex(thrown, order.isList ? first : undefined)
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

/** Splits into parts with at most so many inputs and tokens; an input that alone has too many is a part of its own. */
function split(inputs: EmbeddingInput[], most: { inputs: number; tokens: number }): Part[] {
  const parts: Part[] = []
  let part: Part = { inputs: [], first: 0 }
  let tokens = 0
  for (const [index, input] of inputs.entries()) {
    const own = most.tokens === Number.POSITIVE_INFINITY ? 0 : upperTokenCount(input)
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

/** No tokenizer produces more tokens than the text has bytes. */
const upperTokenCount = (input: EmbeddingInput): number =>
  typeof input === 'string' ? Buffer.byteLength(input) : input.length

/** The same error with the input's index in the whole list; `first` undefined: the client sent no list. */
function withListIndex(thrown: unknown, first: number | undefined): unknown {
  if (!(thrown instanceof GatewayError)) return thrown
  const { param = '' } = thrown.detail
  const [head, index] = /^input\[(\d+)\]/.exec(param) ?? []
  if (head === undefined) return thrown
  const item = first === undefined ? 'input' : `input[${first + Number(index)}]`
  return withParam(thrown, param, item + param.slice(head.length))
}

/** Runs a few at a time, and returns the results in order. Throws the first failure, after which none is started. */
async function runConcurrently<Part, Done>(parts: Part[], work: (part: Part) => Promise<Done>): Promise<Done[]> {
  const done: Done[] = []
  let next = 0
  /** The first failure: the others are caused by it. */
  let failure: { thrown: unknown } | undefined
  const worker = async () => {
    while (next < parts.length && !failure) {
      const at = next++
      try {
        done[at] = await work(parts[at] as Part)
      } catch (thrown) {
        failure ??= { thrown }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(MOST_CALLS_AT_ONCE, parts.length) }, worker))
  if (failure) throw failure.thrown
  return done
}

function checkSize(inputs: number, dimensions: number): void {
  if (inputs * dimensions <= MOST_NUMBERS) return
  const most = Math.floor(MOST_NUMBERS / dimensions)
  throw invalidValue(
    'input',
    `"input" may have at most ${most} items with vectors of ${dimensions} dimensions, not ${inputs}.`,
  )
}

type Expected = { target: Target; count: number; dimensions: number | undefined }

/** Checks the number and the length of vectors: a wrong one would be assigned to the wrong input. */
function checkVectors(vectors: number[][], { target, count, dimensions }: Expected): void {
  const wrong = (what: string) =>
    new GatewayError('bad_upstream_response', `The upstream "${target.provider.id}" returned ${what}.`)
  if (vectors.length !== count) throw wrong(`${vectors.length} vectors for ${count} inputs`)
  const length = dimensions ?? vectors[0]?.length ?? 0
  for (const vector of vectors) {
    if (vector.length === 0) throw wrong('an empty vector')
    if (vector.length !== length) {
      throw wrong(
        `a vector of ${vector.length} dimensions where ${length} were ${dimensions ? 'requested' : 'expected'}`,
      )
    }
    if (!vector.every(Number.isFinite)) throw wrong('a vector with values that are not numbers')
  }
}
