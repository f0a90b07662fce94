/** The client package, as programs use it that know the gateway's address and nothing else. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { experimental_generateVideo as generateVideo } from 'ai'
import { createGatehouse } from '../packages/ai-sdk/src/gatehouse.ts'
import { openPort, type Port } from './kit/served.ts'

let port: Port
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  port = await openPort()
})
afterAll(() => port.close())
const gatehouse = () => createGatehouse({ baseURL: port.url, apiKey: port.token })

test('a video is ordered once, waited for, and comes as an MP4', async () => {
  const { video, providerMetadata } = await generateVideo({
    model: gatehouse().video('sandbox/text-to-video'),
    prompt: 'A red kite @sandbox quick=1',
  })
  expect(video.mediaType).toBe('video/mp4')
  expect(Buffer.from(video.uint8Array.slice(4, 8)).toString()).toBe('ftyp')
  expect(providerMetadata.gatehouse).toMatchObject({ status: 'SUCCESS' })
})
