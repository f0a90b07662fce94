import { expect, test } from 'bun:test'
import type { Target } from '../../providers/provider.ts'
import { silentFor } from './outcome.ts'

test('the error of a silent provider names the time in whole milliseconds', () => {
  const target = { provider: { id: 'acme' } } as Target
  expect(silentFor(target, 299.365966796875).message).toBe('The upstream "acme" sent nothing within 0.299 s.')
  expect(silentFor(target, 2_500).message).toBe('The upstream "acme" sent nothing within 2.5 s.')
})
