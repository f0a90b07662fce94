/** Rate limits and background responses: one request each, counted when it is generated. */
import { afterEach, expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { type Answer, chunks, completion, startVendor, stream, type Wire, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const answerOf = ({ request }: Wire): Answer =>
  request.json().stream ? stream(chunks('Well ', 'thought.')) : whole(completion('Hello'))

it.each([[false], [true]])(
  'a background response (streamed: %p) counts once, and waits for a limit that is used up',
  async (is_stream) => {
    const vendor = startVendor()
    const gateway = await startGateway({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
    closing.push(() => gateway[Symbol.asyncDispose](), vendor.stop)
    const { secret } = await gateway.instance.tokens.issue({ name: 'limited', rate_limits: { requests_per_minute: 1 } })
    const headers = { authorization: `Bearer ${secret}` }
    const json = { model: 'v/m', input: 'hi', background: true, stream: is_stream }
    async function accepted(): Promise<string> {
      const response = await gateway.call('/v1/responses', { json, headers })
      if (!is_stream) return ((await response.json()) as { id: string }).id
      let text = ''
      for await (const bytes of response.body ?? []) {
        text += new TextDecoder().decode(bytes)
        const [, id] = /"id":\s*"(resp_\w+)"/.exec(text) ?? []
        if (id) return id
      }
      throw new Error(text)
    }
    const sent: number[] = []
    vendor.otherwise((wire) => {
      sent.push(gateway.clock.now())
      return answerOf(wire)(wire)
    })
    const statusOf = async (id: string) => {
      const response = await gateway.call(`/v1/responses/${id}`, { headers })
      return ((await response.json()) as { status: string }).status
    }
    async function until(id: string, status: string): Promise<void> {
      while ((await statusOf(id)) !== status) {
        gateway.clock.advance(50)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const [first, second] = [await accepted(), await accepted()]
    await until(first, 'completed')
    const started = gateway.clock.now()
    await until(second, 'completed')
    expect(gateway.clock.now() - started).toBeGreaterThan(30_000)
    expect(vendor.requests).toHaveLength(2)
  },
)

it('a background response is stored where its model hedges calls', async () => {
  const [first, second] = [startVendor(), startVendor()]
  const gateway = await startGateway({
    providers: { v: { base_url: first.url }, w: { base_url: second.url } },
    models: { m: { targets: ['v', 'w'].map((provider) => ({ provider, model: 'm' })), routing: { hedge: true } } },
  })
  closing.push(() => gateway[Symbol.asyncDispose](), first.stop, second.stop)
  first.otherwise((wire) => answerOf(wire)(wire))
  const json = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true }
  // So many calls show how long the target usually takes, and save up a hedge.
  for (let earlier = 0; earlier < 25; earlier++) await (await gateway.chat(json)).text()
  const slow = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  first.otherwise(async (wire) => {
    asked.resolve()
    await slow.promise
    await answerOf(wire)(wire)
  })
  second.otherwise(() => slow.resolve())
  const body = { model: 'm', input: 'hi', background: true }
  const { id } = (await (await gateway.call('/v1/responses', { json: body })).json()) as { id: string }
  await asked.promise
  for (let step = 0; step < 20; step++) {
    gateway.clock.advance(50)
    await new Promise((resolve) => setImmediate(resolve))
  }
  slow.resolve()
  for (let status = ''; status !== 'completed'; ) {
    gateway.clock.advance(50)
    await new Promise((resolve) => setImmediate(resolve))
    status = ((await (await gateway.call(`/v1/responses/${id}`)).json()) as { status: string }).status
    expect(['queued', 'in_progress', 'completed']).toContain(status)
  }
  expect(second.requests).toHaveLength(0)
})
