/** The calls that are recorded of each family: small, cheap, with answers that hold nothing but themselves. */
import type { ChatRequest } from '../../src/protocols/shared/canonical.ts'
import type { Provider } from '../../src/providers/provider.ts'

export const FAMILIES = ['chat', 'embeddings', 'rerank', 'images'] as const
export type Family = (typeof FAMILIES)[number]

/** `name` is the name of its file, without the extension. */
export type RecordedCall = { name: string; key: 'right' | 'wrong'; run(provider: Provider): Promise<unknown> }

const QUESTION = 'Write the numbers from one to ten as words.'
const TOOL_QUESTION = 'What is the weather in Paris? Use the tool.'
const TOOL = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Tells the weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const TEXTS = ['The sun is a star.', 'The moon is not.']
const MISSING = 'model-that-does-not-exist'

export function callsOf(family: Family, model: string): RecordedCall[] {
  const calls: Record<Family, RecordedCall[]> = {
    chat: [
      ...chatPair('', model, { messages: [{ role: 'user', content: QUESTION }], max_tokens: 200 }),
      ...chatPair('tool', model, {
        messages: [{ role: 'user', content: TOOL_QUESTION }],
        max_tokens: 1000,
        tools: [TOOL],
        tool_choice: 'required',
      }),
      ...failing((name) => chat(name, { messages: [{ role: 'user', content: QUESTION }] }, false), model),
    ],
    embeddings: [
      one('embeddings', (provider) => embed(provider, model)),
      ...failing((name) => (provider) => embed(provider, name), model, 'embeddings-'),
    ],
    rerank: [
      one('rerank', (provider) => rerank(provider, model)),
      ...failing((name) => (provider) => rerank(provider, name), model, 'rerank-'),
    ],
    images: [
      one('images', (provider) => image(provider, model)),
      ...failing((name) => (provider) => image(provider, name), model, 'images-'),
    ],
  }
  return calls[family]
}

type Run = RecordedCall['run']
const one = (name: string, run: Run): RecordedCall => ({ name, key: 'right', run })

const chatPair = (prefix: string, model: string, request: Partial<ChatRequest>): RecordedCall[] => [
  one(prefix || 'whole', chat(model, request, false)),
  one(prefix ? `${prefix}-stream` : 'stream', chat(model, request, true)),
]

/** What the provider says of a model that it does not have, and of a key that is wrong. */
const failing = (run: (model: string) => Run, model: string, prefix = ''): RecordedCall[] => [
  { name: `${prefix}error-model`, key: 'right', run: run(MISSING) },
  { name: `${prefix}error-key`, key: 'wrong', run: run(model) },
]

const signal = () => AbortSignal.timeout(120_000)

function chat(model: string, request: Partial<ChatRequest>, stream: boolean): Run {
  const call = { model, request: { model, stream, ...request } as ChatRequest, request_id: 'record' }
  return async (provider) => {
    if (provider.chat === undefined) throw new Error(`The provider "${provider.kind}" has no chat.`)
    if (!stream) return provider.chat.complete(call, signal())
    for await (const _ of provider.chat.chunks(call, signal())) {
      // Read to the end, so that the whole stream is recorded.
    }
    return undefined
  }
}

async function embed({ embeddings, kind }: Provider, model: string): Promise<unknown> {
  if (embeddings === undefined) throw new Error(`The provider "${kind}" has no embeddings.`)
  const inputs = embeddings.max_inputs?.(model) === 1 ? TEXTS.slice(0, 1) : TEXTS
  return embeddings.embed({ model, inputs, request: {}, request_id: 'record' }, signal())
}

async function rerank(provider: Provider, model: string): Promise<unknown> {
  if (provider.rerank === undefined) throw new Error(`The provider "${provider.kind}" has no rerank.`)
  const call = { model, query: 'Which one is a star?', documents: TEXTS, top_n: 2, request_id: 'record' }
  return provider.rerank.rerank(call, signal())
}

async function image({ images, kind }: Provider, model: string): Promise<unknown> {
  if (images === undefined) throw new Error(`The provider "${kind}" has no images.`)
  const request = { model, operation: 'generate' as const, prompt: 'A red square.', n: 1 }
  return images.generate({ model, request, request_id: 'record' }, signal())
}
