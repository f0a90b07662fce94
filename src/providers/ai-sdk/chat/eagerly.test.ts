import { describe, expect, test } from 'bun:test'
import { eagerly } from './eagerly.ts'

describe('a stream read eagerly', () => {
  test('gives what came meanwhile in one batch, in order, nothing twice', async () => {
    let control: ReadableStreamDefaultController<number> | undefined
    const stream = new ReadableStream<number>({
      start(one) {
        control = one
      },
    })
    const batches = eagerly(stream)
    const first = batches.next()
    control?.enqueue(1)
    expect((await first).value).toEqual([1])
    for (const one of [2, 3, 4]) control?.enqueue(one)
    control?.close()
    const rest: number[] = []
    for await (const batch of batches) rest.push(...batch)
    expect(rest).toEqual([2, 3, 4])
  })

  test('reads no more than its bound ahead', async () => {
    let made = 0
    const stream = new ReadableStream<number>({ pull: (control) => control.enqueue(made++) }, { highWaterMark: 0 })
    const batches = eagerly(stream)
    await batches.next()
    for (let turn = 0; turn < 2000; turn++) await Promise.resolve()
    expect(made).toBeGreaterThan(1)
    expect(made).toBeLessThanOrEqual(260)
    await batches.return(undefined)
  })

  test('tells a failure after what came before it, and cancels when it is left', async () => {
    let isCancelled = false
    let control: ReadableStreamDefaultController<number> | undefined
    const failing = new ReadableStream<number>({
      start(one) {
        control = one
      },
    })
    const batches = eagerly(failing)
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
    for await (const _ of eagerly(endless)) break
    expect(isCancelled).toBe(true)
  })
})
