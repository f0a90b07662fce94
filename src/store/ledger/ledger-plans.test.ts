/** What is read of a ledger with millions of entries is found by indexes, on both engines. */
import { describe, expect, test } from 'bun:test'
import { entry } from '../../../test/kit/ledger.ts'
import { plansOfPostgres, plansOfSqlite, stepsOf } from '../../../test/kit/statement-plans.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import type { Store } from '../store.ts'

const failed = {
  ...blankTask({
    task_id: 'task_a',
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'm',
    submit_time: 1,
    request: {},
    base_url: '',
    provider: 'p',
    deadline_at: 9,
    due_ms: 1,
  }),
  status: 'FAILURE' as const,
}

const CHARGES = {
  async work({ tasks, ledger, requestLog }: Store) {
    await tasks.add({ task: failed })
    await ledger.append([entry({ entry_id: 'task_a', kind: 'task', call_id: 'task_a' })])
    await requestLog.taskCharges(['task_a', 'task_b'])
    const reversal = entry({ entry_id: 'other', kind: 'reversal', call_id: 'task_a' })
    await tasks.reopen(failed, { due_ms: 1, deadline_at: 1, copying: null, callback_id: '', reversal })
  },
  of: /^select.* from .?ledger_entries/s,
}

describe('the charges of tasks', () => {
  test('are found by their index of SQLite', async () => {
    const plans = await plansOfSqlite(CHARGES)
    expect(plans).toHaveLength(2)
    for (const step of stepsOf(plans))
      expect(step).toStartWith('SEARCH ledger_entries USING INDEX ledger_entries_of_task')
  })

  test('are found by their index of PostgreSQL', async () => {
    const plans = await plansOfPostgres({ ...CHARGES, settings: ['enable_seqscan = off'] })
    expect(plans).toHaveLength(2)
    for (const plan of plans) expect(stepsOf([plan]).join('\n')).toMatch(/Scan.* ledger_entries_of_task/)
  })
})
