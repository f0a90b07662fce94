import { expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { type BatchExchange, COLLECTED, exchanged, withExchange } from '../protocols/shared/batch-exchange.ts'
import type { Call } from './call.ts'
import { runAside } from './side-call.ts'

const call = { request_id: 'req_1', caller: { token_id: 'tok_1' }, signal: new AbortController().signal } as Call

it('sends its requests, also for a line of a batch that a vendor executes', async () => {
  const exchange: BatchExchange = { entry_id: 'entry' }
  const side = { timeout_ms: 1_000, clock: manualClock(), what: 'Nothing was decided' }
  const request = { url: 'https://vendor.example/v1/moderations', body: '{}' }
  await withExchange(exchange, { provider: 'v', key: null, model: 'm' }, async () => {
    expect(await runAside(call, side, async () => exchanged(request))).toBeUndefined()
    expect(exchange.collected).toBeUndefined()
    expect(() => exchanged(request)).toThrow(COLLECTED.message)
  })
})

it('is aborted at its time limit, and not before', async () => {
  const clock = manualClock()
  const side = { timeout_ms: 1_000, clock, what: 'Nothing was decided' }
  const { signal } = await runAside(call, side, async (own) => own)
  clock.advance(5_000)
  expect(signal.aborted).toBe(false) // it had ended
  const open = runAside(
    call,
    side,
    (own) => new Promise((_, reject) => own.signal.addEventListener('abort', () => reject(own.signal.reason))),
  )
  clock.advance(999)
  expect(await Promise.race([open, Promise.resolve('open')])).toBe('open')
  clock.advance(1)
  await expect(open).rejects.toThrow('Nothing was decided in 1000 ms.')
})
