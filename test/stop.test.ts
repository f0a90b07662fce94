/** What a stop waits for, and what it does not. */
import { expect, test } from 'bun:test'
import { FILM } from './kit/crash-gateway.ts'
import { startGateway } from './kit/gateway.ts'
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
