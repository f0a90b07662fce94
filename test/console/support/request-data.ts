/** A store with rows of the request log: calls of several models that went well, failed, waited and were hedged. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../../src/store/engines/sqlite.ts'
import { requestLogStore } from '../../../src/store/requests/request-log.ts'
import type { RequestRow } from '../../../src/store/requests/request-row.ts'
import { requestRow } from '../../kit/request-rows.ts'

/** The address of a new store with these rows. */
export async function storeWith(rows: readonly RequestRow[]): Promise<string> {
  const url = join(tmpdir(), `gatehouse-console-${process.pid}-${crypto.randomUUID()}.db`)
  const engine = await openSqlite(url)
  const log = requestLogStore(engine)
  for (let at = 0; at < rows.length; at += 1_000) await log.append(rows.slice(at, at + 1_000))
  await engine.close()
  return `sqlite:${url}`
}

const MODELS = ['openai/gpt-5', 'anthropic/claude-opus-4', 'sandbox/general', 'google/gemini-3-pro']

/** The newest `number` rows until now, one a second. */
export const someRequests = (number: number, now_ms = Date.now()): RequestRow[] =>
  Array.from({ length: number }, (_, index) => {
    const at = number - index
    const model = MODELS[at % MODELS.length] ?? ''
    const hasFailed = at % 11 === 3
    const isRefused = at % 29 === 5
    return requestRow({
      row_id: index + 1,
      at_ms: now_ms - at * 1_000,
      request_id: `req_${String(at).padStart(24, '0')}`,
      session: at % 5 === 0 ? `session-${at % 3}` : null,
      end_user: at % 3 === 0 ? 'ann' : null,
      trace_id: at % 7 === 0 ? '0af7651916cd43dd8448eb211c80319c' : null,
      model: isRefused ? '' : model,
      family: isRefused ? '' : 'chatcompat',
      provider: isRefused ? '' : (model.split('/')[0] ?? ''),
      target: isRefused ? '' : model,
      status: isRefused ? 429 : hasFailed ? 502 : 200,
      error: isRefused ? 'rate_limit_exceeded' : hasFailed ? 'upstream_error' : null,
      total_ms: 180 + ((at * 7_919) % 4_000),
      cost: isRefused || hasFailed ? null : ((at * 104_729) % 90_000) * 1_000,
      tags: at % 4 === 0 ? ['team:blue', 'nightly'] : [],
      detail: {
        method: 'POST',
        path: '/v1/chat/completions',
        outcome: 'done',
        ...(isRefused ? {} : detailOf(at, { model, hasFailed })),
      },
    })
  })

const detailOf = (at: number, { model, hasFailed }: { model: string; hasFailed: boolean }): RequestRow['detail'] => ({
  stream: true,
  first_byte_ms: 120 + (at % 50),
  units: { input_tokens: 300 + ((at * 31) % 9_000), output_tokens: hasFailed ? 0 : 20 + ((at * 17) % 900) },
  attempts: hasFailed
    ? [
        {
          target: model,
          key: 'main',
          start_ms: 4,
          ms: 90,
          error: 'upstream_error',
          upstream_status: 503,
          next: 'other_key',
        },
        {
          target: model,
          key: 'spare',
          start_ms: 96,
          ms: 70,
          error: 'upstream_error',
          upstream_status: 502,
          next: 'none_left',
        },
      ]
    : [{ target: model, start_ms: 3, ms: 110 + (at % 50) }],
})
