/** The rate-limit headers of a provider are the operator's account: no client sees them, with passthrough or without. */
import { afterEach, expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { chunks, completion, failure, startVendor, stream, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const SECRET = '987654321'
const HEADERS = Object.fromEntries(
  [
    'x-ratelimit-limit-requests',
    'x-ratelimit-remaining-tokens',
    'x-ratelimit-reset-requests',
    'anthropic-ratelimit-requests-limit',
    'anthropic-ratelimit-tokens-remaining',
    'anthropic-ratelimit-input-tokens-reset',
    'anthropic-ratelimit-unified-status',
    'anthropic-organization-id',
    'openai-organization',
    'ratelimit',
    'ratelimit-policy',
    'x-ratelimit-limit-project-tokens',
  ].map((name) => [name, SECRET]),
)

const message = {
  id: 'msg_v',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-6',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
}
const events = [
  { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const CASES = [true, false].flatMap((passthrough) =>
  (['/v1/chat/completions', '/v1/messages'] as const).flatMap((path) =>
    (['whole', 'streamed', 'refused'] as const).map((form) => ({ passthrough, path, form })),
  ),
)

it.each(CASES)(
  'of $path ($form, passthrough $passthrough) are those of the gateway',
  async ({ passthrough, path, form }) => {
    const vendor = startVendor()
    const isMessages = path === '/v1/messages'
    const kind = isMessages ? 'messages-compat' : 'chatcompat'
    const gateway = await startGateway({
      providers: { v: { kind, base_url: vendor.url, key: 'k', quirks: { passthrough } } },
      models: { 'v/m': {} },
    })
    closing.push(() => gateway[Symbol.asyncDispose](), vendor.stop)
    const headers = HEADERS
    if (form === 'refused') vendor.otherwise(failure(400, {}, headers))
    else if (form === 'whole') vendor.otherwise(whole(isMessages ? message : completion('Hi'), { headers }))
    else
      vendor.otherwise(
        isMessages ? stream(events, { headers, done: false }) : stream(chunks('Hi ', 'there'), { headers }),
      )
    const rate_limits = { requests_per_minute: 7 }
    const { secret } = await gateway.instance.tokens.issue({ name: 'limited', rate_limits })
    const json = {
      model: 'v/m',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'hi' }],
      stream: form === 'streamed',
    }
    const response = await gateway.call(path, { json, headers: { authorization: `Bearer ${secret}` } })
    const text = await response.text()
    expect(response.status).toBe(form === 'refused' ? 400 : 200)
    const all = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
    expect(`${all}\n${text}`).not.toContain(SECRET)
    const own = isMessages ? 'anthropic-ratelimit-requests-limit' : 'x-ratelimit-limit-requests'
    expect(response.headers.get(own)).toBe('7')
    expect(vendor.requests).toHaveLength(1)
  },
)
