import { expect, it } from 'bun:test'
import type { Caller } from '../../spec/token.ts'
import { CallGuards } from './call-guards.ts'
import { createGuard } from './guard.ts'
import { Blocked } from './text-filter.ts'

const call = { request_id: 'req_1', caller: {} as Caller, signal: new AbortController().signal }
const ask = () => Promise.reject(new Error('nobody is asked'))

it('limits the texts of each answer by themselves, since one that failed may have been counted in part', () => {
  const guards = new CallGuards([createGuard('short', { kind: 'limits', max_characters: 10 })], {
    call,
    ask,
    results: [],
  })
  const [first, second] = [guards.outputFilters(), guards.outputFilters()]
  const one = first(false)
  expect(one.push('123456789')).toBe('123456789')
  expect(second(false).push('123456789')).toBe('123456789')
  expect(one.push('0')).toBe('0')
  // Another text of the same answer.
  expect(() => first(true).push('1')).toThrow(Blocked)
})
