import { describe, expect, test } from 'bun:test'
import { readAhead } from './read-ahead.ts'

describe('readAhead', () => {
  test('yields the items that have arrived in one batch, in order, each item once', async () => {
    let control: ReadableStreamDefaultController<number> | undefined
    const stream = new ReadableStream<number>({
      start(one) {
        control = one
      },
    })
    const batches = readAhead(stream)
    const first = batches.next()
    control?.enqueue(1)
    expect((await first).value).toEqual([1])
    for (const one of [2, 3, 4]) control?.enqueue(one)
    control?.close()
    const rest: number[] = []
    for await (const batch of batches) rest.push(...batch)
    expect(rest).toEqual([2, 3, 4])
  })

  test('reads at most its limit ahead', async () => {
    let produced = 0
    const stream = new ReadableStream<number>({ pull: (control) => control.enqueue(produced++) }, { highWaterMark: 0 })
    const batches = readAhead(stream)
    await batches.next()
    for (let tick = 0; tick < 2000; tick++) await Promise.resolve()
    expect(produced).toBeGreaterThan(1)
    expect(produced).toBeLessThanOrEqual(260)
    await batches.return(undefined)
  })

  test('throws an error after the items before it, and cancels the stream when the loop ends', async () => {
    let isCancelled = false
    let control: ReadableStreamDefaultController<number> | undefined
    const failing = new ReadableStream<number>({
      start(one) {
        control = one
      },
    })
    const batches = readAhead(failing)
    const first = batches.next()
    control?.enqueue(1)
    expect((await first).value).toEqual([1])
    control?.error(new Error('broken'))
    expect(await batches.next().catch((error: unknown) => error)).toEqual(new Error('broken'))

    const endless = new ReadableStream<number>({
      start: (one) => one.enqueue(1),
      cancel: () => {
        isCancelled = true
      },
    })
    for await (const _ of readAhead(endless)) break
    expect(isCancelled).toBe(true)
  })
})
