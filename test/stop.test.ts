/** Checks for what a stop waits, and for what it does not. */
import { expect, test } from 'bun:test'
import { FILM } from './kit/crash-gateway.ts'
import { startGateway } from './kit/gateway.ts'
import { chunks, hang, startVendor, stream } from './kit/vendor.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

test('a stop does not wait for clients that wait for a task to change: they get its current state', async () => {
  const vendor = startVideoVendor({ polls: 100 })
  await using gateway = await startGateway({
    providers: { acme: { kind: 'chatcompat-video', base_url: vendor.url, key: 'acme-key' } },
    models: { [FILM]: { families: ['video-generation'] } },
  })
  const path = '/v1/video/generations'
  const { data } = await (await gateway.call(path, { json: { model: FILM, prompt: 'A kite' } })).json()
  await gateway.instance.tasks.idle()
  const waiting = gateway.call(`${path}/${data.task_id}?wait=60`)
  // The clock stands still: nothing but the stop itself can end the wait.
  await gateway.instance.drain({ deadline_ms: 25_000 })
  const answer = await (await waiting).json()
  expect(answer.data.status).toBe('QUEUED')
  await vendor.stop()
})

test('a call that a stop aborts gets its error, and is recorded at the most that it can have used', async () => {
  const arrived = Promise.withResolvers<void>()
  const silent = Bun.serve({
    port: 0,
    fetch() {
      arrived.resolve()
      return new Promise<Response>(() => {})
    },
  })
  const gateway = await startGateway({
    providers: { acme: { kind: 'chatcompat', base_url: silent.url.href, key: 'acme-key' } },
    models: { 'acme/m': {} },
  })
  const asked = gateway.chat({ model: 'acme/m', messages: [{ role: 'user', content: 'Hello there' }] })
  await arrived.promise
  const drained = gateway.instance.drain({ deadline_ms: 0 })
  gateway.clock.advance(0)
  const response = await asked
  expect(response.status).toBe(503)
  await drained
  expect(gateway.logged()).toMatch(
    /"path":"\/v1\/chat\/completions".*"error":"shutting_down".*"output_tokens":16384,"estimated":true/,
  )
  await gateway.instance.close({ deadline_ms: 0 })
  await silent.stop(true)
})

test('a stop ends responses in the background with the open requests, and not one after the other', async () => {
  const vendor = startVendor(hang())
  await using gateway = await startGateway({
    providers: { acme: { base_url: vendor.url, key: 'acme-key' } },
    models: { 'acme/m': {} },
  })
  await gateway.call('/v1/responses', { json: { model: 'acme/m', input: 'Hello there', background: true } })
  const { aborted } = await vendor.request()
  // The clock stands still: a stop that waited for the settlement of the call would not end.
  await gateway.instance.drain({ deadline_ms: 0 })
  await aborted
  await vendor.stop()
})

test('a stop lets a response begin in the background whose events an open request follows', async () => {
  const arrived = Promise.withResolvers<void>()
  const vendor = startVendor(stream(chunks('Well ', 'thought.')))
  await using gateway = await startGateway({
    providers: { acme: { base_url: vendor.url, key: 'acme-key' } },
    models: { 'acme/m': {} },
  })
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await arrived.promise
      const json = { model: 'acme/m', input: 'Hello there', background: true, stream: true }
      controller.enqueue(new TextEncoder().encode(JSON.stringify(json)))
      controller.close()
    },
  })
  const asked = gateway.instance.fetch(
    new Request('http://gateway/v1/responses', {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
      body,
    }),
  )
  const drained = gateway.instance.drain({ deadline_ms: 25_000 })
  arrived.resolve()
  expect(await (await asked).text()).toContain('"type":"response.completed"')
  await drained
  await vendor.stop()
})
