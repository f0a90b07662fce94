import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'

const task = blankTask({
  task_id: `task_${'1'.padStart(32, '0')}`,
  token_id: 'tok_a',
  family: 'video-generation',
  model: 'a/film',
  status: 'SUBMITTED',
  submit_time: 1,
  request: {},
  base_url: 'http://gateway.test',
  deadline_at: 3_600,
  due_ms: 1_000,
})

for (const { name, open, cleanup } of ENGINES) {
  describe(`the steps of a task on ${name}`, () => {
    afterEach(cleanup)

    test('are its states, targets and failed steps, each once and in order', async () => {
      const { tasks } = await open()
      await tasks.add({ task })
      const save = (change: object) => tasks.save(task, { due_ms: 1, ...change })
      await save({ provider: 'a', upstream_model: 'film', status: 'QUEUED', at_ms: 2_000 })
      await save({ failures: 1, at_ms: 3_000 })
      await save({ failures: 0, status: 'IN_PROGRESS', progress: 10, at_ms: 4_000 })
      await save({ status: 'IN_PROGRESS', progress: 20, at_ms: 5_000 })
      await save({ due_ms: 7, at_ms: 6_000 })
      await save({ status: 'FAILURE', fail_code: 'timeout', finish_time: 7, at_ms: 7_000 })
      const steps = await tasks.steps(task.task_id)
      expect(steps.map(({ at_ms, status, failures, fail_code }) => [at_ms, status, failures, fail_code])).toEqual([
        [2_000, 'QUEUED', 0, ''],
        [3_000, 'QUEUED', 1, ''],
        [4_000, 'IN_PROGRESS', 0, ''],
        [7_000, 'FAILURE', 0, 'timeout'],
      ])
      expect(steps[0]).toMatchObject({ provider: 'a', upstream_model: 'film', provider_key: null })
    })

    test('are not recorded for a change without a time', async () => {
      const { tasks } = await open()
      await tasks.add({ task })
      await tasks.save(task, { status: 'QUEUED', due_ms: 1 })
      expect(await tasks.steps(task.task_id)).toEqual([])
    })
  })
}
