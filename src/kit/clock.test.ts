import { afterEach, expect, it, spyOn } from 'bun:test'
import { AsyncLocalStorage } from 'node:async_hooks'
import { systemClock } from './clock.ts'

const setTimer = spyOn(globalThis, 'setTimeout')
afterEach(() => setTimer.mockRestore())

it('the timer that several works share belongs to none of their calls', () => {
  const call = new AsyncLocalStorage<string>()
  const contexts: (string | undefined)[] = []
  const timer = setTimeout(() => {}, 0)
  setTimer.mockImplementation(((_work: () => void, _ms: number) => {
    contexts.push(call.getStore())
    return timer
  }) as typeof setTimeout)
  const cancel = call.run('first', () => systemClock.after(86_399_000, () => {}))
  call.run('second', () => systemClock.after(86_399_000, () => {}))()
  cancel()
  expect(contexts).toEqual([undefined])
})
