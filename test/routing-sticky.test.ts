/** Sticky routing against vendors that cache prompts as real ones do: by key, and by the beginning of the prompt. */
import { afterEach, describe, expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Message = { role: string; content: string }

/** Its cache holds the messages of earlier calls of the same key; what a prompt begins with is found there. */
function cachingVendor() {
  const prompts = new Set<string>()
  const counts = { prompt: 0, cached: 0 }
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  vendor.otherwise(async (wire) => {
    const messages = wire.request.json().messages as Message[]
    let [path, prompt_tokens, cached_tokens] = [wire.request.headers.authorization ?? '', 0, 0]
    for (const { role, content } of messages) {
      path = Bun.hash(`${path}|${role}|${content}`).toString(16)
      const tokens = Math.ceil(content.length / 4)
      prompt_tokens += tokens
      if (prompts.has(path)) cached_tokens += tokens
      prompts.add(path)
    }
    counts.prompt += prompt_tokens
    counts.cached += cached_tokens
    const usage = {
      prompt_tokens,
      completion_tokens: 1,
      total_tokens: prompt_tokens + 1,
      prompt_tokens_details: { cached_tokens },
    }
    await whole(completion('ok', { usage }))(wire)
  })
  return { url: vendor.url, counts }
}

/** So many that all of them go to two of three vendors once in a million runs: tokens, and so the choices, are random. */
const CONVERSATIONS = 36
const TURNS = 6

/** In another order in each turn: in the same one, taking turns could send each conversation to one key by chance. */
const shuffled = <T>(list: T[], turn: number): T[] =>
  list
    .map((one, index) => ({ one, rank: Bun.hash(`${turn}|${index}`) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ one }) => one)

/** The share of the prompt tokens that the vendors found in their caches, as they and as the clients saw it. */
async function cachedShare(sticky: 'prefix' | 'conversation' | undefined) {
  const vendors = [cachingVendor(), cachingVendor(), cachingVendor()]
  const gateway = await startGateway({
    providers: Object.fromEntries(
      vendors.map(({ url }, index) => {
        const keys = [1, 2].map((key) => ({ name: `k${key}`, key: `secret-key-${index}-${key}` }))
        return [`v${index}`, { base_url: url, keys }]
      }),
    ),
    models: {
      'house/fast': {
        targets: vendors.map((_, index) => ({ provider: `v${index}`, model: 'fast' })),
        routing: { strategy: 'weighted', ...(sticky ? { sticky } : {}) },
      },
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose]())
  const conversations = Array.from({ length: CONVERSATIONS }, (_, index): Message[] => [
    { role: 'system', content: `You are agent ${index}. ${'Follow the rules of the house. '.repeat(100)}` },
  ])
  const seen = { prompt: 0, cached: 0 }
  const used = new Set<string>()
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [index, messages] of shuffled([...conversations.entries()], turn)) {
      messages.push({ role: 'user', content: `Question ${turn} of ${index}. ${'It is about this. '.repeat(20)}` })
      const conversation = sticky === 'conversation' ? { prompt_cache_key: `c${index}` } : {}
      const response = await gateway.chat({ model: 'house/fast', messages, ...conversation })
      expect(response.status).toBe(200)
      used.add(response.headers.get('x-gatehouse-target') ?? '')
      const { usage } = (await response.json()) as {
        usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } }
      }
      seen.prompt += usage.prompt_tokens
      seen.cached += usage.prompt_tokens_details?.cached_tokens ?? 0
      messages.push({ role: 'assistant', content: 'ok' })
    }
  }
  const sum = (of: 'prompt' | 'cached') => vendors.reduce((total, { counts }) => total + counts[of], 0)
  expect(seen).toEqual({ prompt: sum('prompt'), cached: sum('cached') })
  expect(used.size).toBe(vendors.length)
  return seen.cached / seen.prompt
}

describe('sticky routing over three vendors with two keys each', () => {
  it('multiplies the share of prompt tokens that the vendors have in their caches', async () => {
    const without = await cachedShare(undefined)
    const [byPrefix, byConversation] = [await cachedShare('prefix'), await cachedShare('conversation')]
    expect(byPrefix).toBeGreaterThan(0.7)
    expect(byConversation).toBeGreaterThan(0.7)
    expect(byPrefix / without).toBeGreaterThan(2)
    expect(byConversation / without).toBeGreaterThan(2)
  })
})
