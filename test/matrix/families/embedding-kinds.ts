/** The kinds of embedding providers, each with its own protocol. All return the same vectors for the same texts. */
import { base64OfFloats } from '../../../src/kit/float32.ts'
import { unknownFieldIn } from '../vendors/wire-vendor.ts'
import type { FamilyKind } from './family.ts'
import { BEARER, type IncomingRequest, openaiFailure, startWire, type Wire } from './vendor.ts'

export const LENGTH = 8
/** The usage of one text, or of a list of token numbers, at every provider here. */
export const TOKENS = 3

/** Values that 32-bit floats represent exactly, so that no conversion changes them. */
export const vectorOf = (text: string, length = LENGTH): number[] =>
  Array.from({ length }, (_, at) => {
    const sum = [...text].reduce((total, letter, place) => total + (letter.codePointAt(0) ?? 0) * (place + at + 1), 7)
    return (sum % 255) / 128 - 1
  })

/** Token numbers as the text that stands for them. */
export const textOfTokens = (tokens: readonly number[]): string => tokens.join(' ')

type OpenaiBody = {
  model: string
  input: string | string[] | number[] | number[][]
  dimensions?: number
  encoding_format?: string
}

function openaiTexts({ input }: OpenaiBody): string[] {
  if (typeof input === 'string') return [input]
  if (typeof input[0] === 'number') return [textOfTokens(input as number[])]
  return input.map((item) => (typeof item === 'string' ? item : textOfTokens(item as number[])))
}

function openaiAnswer(incoming: IncomingRequest): ReturnType<Wire['answer']> {
  if (incoming.path !== '/v1/embeddings') return undefined
  const unknownField = unknownFieldIn(incoming.body, ['model', 'input', 'dimensions', 'encoding_format', 'user'])
  if (unknownField) return `${unknownField}: Extra inputs are not permitted`
  const body = incoming.body as OpenaiBody
  const texts = openaiTexts(body)
  return {
    object: 'list',
    model: 'as-the-vendor-calls-it',
    // The indices give the order.
    data: texts
      .map((text, index) => {
        const vector = vectorOf(text, body.dimensions)
        const embedding = body.encoding_format === 'base64' ? base64OfFloats(vector) : vector
        return { object: 'embedding', index, embedding }
      })
      .reverse(),
    usage: { prompt_tokens: texts.length * TOKENS, total_tokens: texts.length * TOKENS },
  }
}

const OPENAI: Wire = { auth: BEARER, answer: openaiAnswer, failure: openaiFailure }

type Content = { model: string; content: { parts: { text: string }[] }; outputDimensionality?: number }

const valuesOf = ({ content, outputDimensionality }: Content) => ({
  values: vectorOf(content.parts.map(({ text }) => text).join(''), outputDimensionality),
})

const googleFailure = (code: number, message: string) => ({
  error: { code, message, status: code === 429 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT' },
})

function googleAnswer({ path, body }: IncomingRequest): ReturnType<Wire['answer']> {
  const [, model, method] = /^\/v1beta\/models\/([^/]+):(embedContent|batchEmbedContents)$/.exec(path) ?? []
  if (!method) return undefined
  const params = method === 'embedContent' ? [body as Content] : (body.requests as Content[])
  for (const one of params) {
    const unknownField = unknownFieldIn(one, ['model', 'content', 'outputDimensionality', 'taskType', 'title'])
    if (unknownField) return `Invalid JSON payload received. Unknown name "${unknownField}"`
    if (method !== 'embedContent' && one.model !== `models/${model}`) return 'the model of a request is another one'
  }
  const usageMetadata = { promptTokenCount: params.length * TOKENS }
  const embeddings = params.map(valuesOf)
  return method === 'embedContent' ? { embedding: embeddings[0], usageMetadata } : { embeddings, usageMetadata }
}

const GOOGLE: Wire = { auth: { header: 'x-goog-api-key', prefix: '' }, answer: googleAnswer, failure: googleFailure }

type CohereBody = { texts: string[]; output_dimension?: number; embedding_types: string[]; input_type: string }

function cohereAnswer(incoming: IncomingRequest): ReturnType<Wire['answer']> {
  if (incoming.path !== '/v2/embed') return undefined
  const { texts, output_dimension, embedding_types, input_type } = incoming.body as CohereBody
  if (!input_type || !embedding_types.includes('float')) return 'input_type and embedding_types are required'
  return {
    id: 'e1',
    texts,
    embeddings: { float: texts.map((text) => vectorOf(text, output_dimension)) },
    meta: { api_version: { version: '2' }, billed_units: { input_tokens: texts.length * TOKENS } },
    response_type: 'embeddings_by_type',
  }
}

export const cohereFailure = (_: number, message: string) => ({ id: 'x', message })
const COHERE: Wire = { auth: BEARER, answer: cohereAnswer, failure: cohereFailure }

/** Every length up to this one is allowed, so the gateway itself refuses a larger one. */
export const MOST_LENGTH = 512
const more: FamilyKind['more'] = { embeddings: { dimensions: { minimum: 1, maximum: MOST_LENGTH } } }

export const EMBEDDING_KINDS: FamilyKind[] = [
  {
    name: 'chatcompat',
    start: () => startWire(OPENAI),
    path: '/v1',
    provider: { kind: 'chatcompat', quirks: { embedding_base64: true } },
    model: 'text-embedding-3-small',
    more,
  },
  {
    name: 'contentgen-compat',
    start: () => startWire(GOOGLE),
    path: '/v1beta',
    provider: { kind: 'contentgen-compat' },
    model: 'gemini-embedding-001',
    more,
    unsupported: ['tokens'],
  },
  {
    name: 'google',
    start: () => startWire(GOOGLE),
    path: '/v1beta',
    provider: { kind: 'google' },
    model: 'gemini-embedding-001',
    more,
    unsupported: ['tokens'],
  },
  {
    name: 'cohere',
    start: () => startWire(COHERE),
    path: '/v2',
    provider: { kind: 'cohere' },
    model: 'embed-v4.0',
    more,
    unsupported: ['tokens'],
  },
]
