/** Makes `COVERED_CALLS` calls under the runtime's coverage, which counts how often each line was executed: a test for `bun test`. */
import { test } from 'bun:test'
import { endCalls, SETTLE_MILLISECONDS, startOneCall } from './one-call.ts'

test('calls', async () => {
  try {
    const call = await startOneCall()
    for (let made = 0; made < Number(process.env.COVERED_CALLS); made++) await call()
    await Bun.sleep(SETTLE_MILLISECONDS)
  } finally {
    endCalls()
  }
}, 60_000)
