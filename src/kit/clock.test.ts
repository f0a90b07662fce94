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

it('a time beyond the longest timer of the runtime is waited for in parts', () => {
  const LONGEST = 2 ** 31 - 1
  const set: { work: () => void; ms: number }[] = []
  const timer = setTimeout(() => {}, 0)
  const spied = spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms: number) => {
    set.push({ work, ms })
    return timer
  }) as typeof setTimeout)
  let ran = 0
  systemClock.after(2 * LONGEST + 5, () => ran++)
  for (let part = 0; part < 3; part++) {
    expect(ran).toBe(0)
    set[part]?.work()
  }
  spied.mockRestore()
  expect([ran, set.map(({ ms }) => ms)]).toEqual([1, [LONGEST, LONGEST, 5]])
})
