/** The lines of a large batch are closed by indexes, on both engines: no statement reads the lines of others, or all of it. */
import { describe, expect, test } from 'bun:test'
import { plansOfPostgres, plansOfSqlite, stepsOf } from '../../../test/kit/statement-plans.ts'
import type { Store } from '../store.ts'
import type { Batch, BatchStore } from './batch-store.ts'

const LINES = 20_000
const CLAIM = { batch_id: 'batch_1', fence: 0 }
const RESULT = { outcome: 'succeeded', kind: 'output', text: '{}' } as const
const SOME = Array.from({ length: 150 }, (_, at) => 10 + at)

const newBatch = (batch_id: string): Batch => ({
  batch_id,
  token_id: 'tok_a',
  project_id: null,
  api: 'openai',
  endpoint: '/v1/chat/completions',
  status: 'in_progress',
  request: { headers: {}, base_url: '' },
  progress: {},
  created_at: 1,
  expires_at: 2,
  cancelling_at: null,
  deleted_at: null,
  total: LINES,
  succeeded: 0,
  errored: 0,
  canceled: 0,
  expired: 0,
  input_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  due_ms: 5,
  leased_by: '',
  fence: 0,
})

/** Some batches whose lines have nearly all ended. */
async function fill(batches: BatchStore, run: (statement: string) => Promise<unknown>): Promise<void> {
  await batches.add(newBatch(CLAIM.batch_id))
  await run(`
    insert into batch_lines (batch_id, line, offset_bytes, bytes, custom_id, state, attempts, called_again)
    with recursive b (n) as (select 0 union all select n + 1 from b where n < 9),
      l (n) as (select 0 union all select n + 1 from l where n < ${LINES - 1})
    select 'batch_' || b.n, l.n, l.n, 9, '', case when l.n > 1000 then 2 else 0 end, 0, 0 from b cross join l`)
  await run('analyze batch_lines')
}

/** All that happens to lines until their batch is over. */
async function closeLines(batches: BatchStore): Promise<void> {
  const [line] = await batches.pending('batch_1', 5, 1)
  if (!line) throw new Error('no line waits')
  await batches.start(CLAIM, line)
  await batches.end('batch_1', { ...line, attempts: 1 }, RESULT)
  await batches.started('batch_1')
  await batches.callAgain(CLAIM)
  await batches.close(
    CLAIM,
    SOME.map((line) => ({ line, result: RESULT })),
  )
  const others = SOME.map((line) => line + 500)
  await batches.order(CLAIM, others)
  await batches.ordered('batch_1', others)
  await batches.closeOrdered(
    CLAIM,
    others.map((line) => ({ line, result: RESULT })),
  )
  await batches.loose('batch_1')
  await batches.results('batch_1', 'output', 1_000)
  await batches.moved(CLAIM, { kind: 'output', part: 0, lines: 2, bytes: 4 }, [10, 11])
  await batches.deleteLines('batch_1', 500)
}

const OF_LINES = /\bbatch_(lines|parts)\b/

const CLOSING = {
  fill: ({ batches }: Store, run: (statement: string) => Promise<unknown>) => fill(batches, run),
  work: ({ batches }: Store) => closeLines(batches),
  of: OF_LINES,
}

/** Gives their results to lines that wait, and to lines that a provider's batch has. */
const ENDING = 'with given'

describe('closing the lines of a batch', () => {
  test('searches indexes of SQLite, and the primary key for each line that is given', async () => {
    const plans = await plansOfSqlite(CLOSING)
    const steps = stepsOf(plans).filter((step) => OF_LINES.test(step))
    expect(steps.length).toBeGreaterThan(10)
    expect(steps.filter((step) => !step.startsWith('SEARCH batch_'))).toEqual([])
    expect(new Set(stepsOf(plans, ENDING).filter((step) => OF_LINES.test(step)))).toEqual(
      new Set(['SEARCH batch_lines USING INDEX sqlite_autoindex_batch_lines_1 (batch_id=? AND line=?)']),
    )
  })

  test('searches indexes of PostgreSQL, and the primary key for each line that is given', async () => {
    const plans = await plansOfPostgres(CLOSING)
    const steps = stepsOf(plans)
    expect(steps.filter((step) => /Scan.* on batch_lines/.test(step)).length).toBeGreaterThan(8)
    expect(steps.filter((step) => /Seq Scan on batch_/.test(step))).toEqual([])
    const searched = stepsOf(plans, ENDING).filter((step) => /Index Cond: /.test(step))
    expect(searched.length).toBeGreaterThan(1)
    for (const step of searched) expect(step).toMatch(/batch_id = .+ AND \(line = /)
  })
})
