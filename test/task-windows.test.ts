/** In which window of a budget a task is charged: always the one that has admitted it. */
import { expect, it } from 'bun:test'
import fc from 'fast-check'
import { type ScriptedVendor, scriptedVendor, success, taskEngine } from './kit/task-engine.ts'

const DAY = 86_400_000
const dayOf = (at_ms: number) => Math.floor(at_ms / DAY)

it('charges a task in the day of its submission, however it ends, and whenever', async () => {
  const orders = fc.array(
    fc.record({
      before_midnight: fc.integer({ min: 1, max: 40 }),
      runs: fc.integer({ min: 1, max: 90 }),
      fails: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  )
  await fc.assert(
    fc.asyncProperty(orders, async (given) => {
      let [isDone, fails] = [false, false]
      const vendor: ScriptedVendor = scriptedVendor({
        async status() {
          if (!isDone) return { status: 'IN_PROGRESS' }
          return fails ? { status: 'FAILURE', fail_code: 'upstream_error', fail_reason: 'broken' } : success()
        },
      })
      await using engine = await taskEngine({ vendors: { acme: vendor } })
      for (const order of given) {
        isDone = false
        engine.clock.advance(DAY - (engine.clock.now() % DAY) - order.before_midnight * 1000)
        const submitted = dayOf(engine.clock.now())
        const task_id = await engine.submit()
        await engine.run(order.runs)
        isDone = true
        fails = order.fails
        await engine.run(30)
        expect((await engine.read(task_id)).status).toBe(fails ? 'FAILURE' : 'SUCCESS')
        const entries = await engine.store.ledger.ofCall(task_id)
        expect(entries.map(({ kind, at_ms }) => [kind, dayOf(at_ms)])).toEqual([['task', submitted]])
      }
    }),
    { numRuns: 15 },
  )
})
