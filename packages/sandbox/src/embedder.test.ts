import { expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { embedText, embedTokens } from './embed.ts'
import { createEmbedder } from './embedder.ts'

const NEVER = new AbortController().signal
const text = (at: number, length: number) =>
  `text ${at} of a long list `.repeat(Math.ceil(length / 24)).slice(0, length)
const texts = (count: number, length: number) => Array.from({ length: count }, (_, at) => text(at, length))

test('long lists have the same vectors as short ones, and do not delay them', async () => {
  const embedder = createEmbedder({ clock: manualClock() })
  const order: string[] = []
  const note = (name: string) => (vectors: number[][]) => {
    order.push(name)
    return vectors
  }
  const large = texts(64, 16_000)
  const long = embedder.embed(large, 32, NEVER).then(note('long'))
  const shorter = embedder.embed(texts(4, 16_000), 32, NEVER).then(note('shorter'))
  const short = embedder.embed(['short'], 32, NEVER).then(note('short'))
  expect(await short).toEqual([embedText('short', 32)])
  expect((await shorter)[3]).toEqual(embedText(text(3, 16_000), 32))
  const vectors = await long
  expect([vectors.length, vectors[0], vectors[63]]).toEqual([
    64,
    embedText(text(0, 16_000), 32),
    embedText(text(63, 16_000), 32),
  ])
  expect(order).toEqual(['short', 'shorter', 'long'])
  embedder.close()
})

test('the worker serves token ids, ends when it is idle, and starts again', async () => {
  const clock = manualClock()
  const embedder = createEmbedder({ clock })
  const tokens = Array.from({ length: 9_000 }, (_, at) => at % 700)
  for (let round = 0; round < 2; round++) {
    expect(await embedder.embed([tokens], 16, NEVER)).toEqual([embedTokens(tokens, 16)])
    clock.advance(60_000)
  }
  embedder.close()
})

test('a call ends when it is aborted, and when the sandbox is closed', async () => {
  const embedder = createEmbedder({ clock: manualClock() })
  const stop = new AbortController()
  const aborted = embedder.embed(texts(64, 16_000), 32, stop.signal)
  stop.abort(new Error('enough'))
  await expect(aborted).rejects.toThrow('enough')
  const closed = embedder.embed(texts(64, 16_000), 32, NEVER)
  embedder.close()
  await expect(closed).rejects.toThrow('closed')
})
