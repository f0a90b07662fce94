/** Rows of the request log, for tests and benchmarks. */
import type { RequestRow } from '../../src/store/requests/request-row.ts'

/** A successful call. */
export const requestRow = (given: Partial<RequestRow> = {}): RequestRow => ({
  row_id: 1,
  at_ms: 1_767_225_600_000,
  request_id: 'req_1',
  token_id: 'tok_1',
  project_id: null,
  end_user: null,
  session: null,
  trace_id: null,
  family: 'chatcompat',
  model: 'sandbox/echo',
  provider: 'sandbox',
  target: 'sandbox/echo',
  status: 200,
  error: null,
  total_ms: 12.5,
  cost: 0,
  tags: [],
  detail: {},
  ...given,
})
