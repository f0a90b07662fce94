/** The filters of the console's request log, and the rows of its live tail. */
import { describe, expect, it } from 'bun:test'
import {
  FILTER_NAMES,
  FILTERS,
  type FilteredRow,
  filterOfText,
  filtersOf,
  meets,
  troubleOf,
} from '../../console/src/pages/requests/filters.ts'
import { LiveRows, MAX_LIVE_ROWS } from '../../console/src/pages/requests/live-rows.ts'
import { REQUEST_CONDITIONS } from '../../src/observe/requests/request-filter.ts'

const row = (given: Partial<FilteredRow> = {}): FilteredRow => ({
  request_id: 'req_1',
  token_id: 'tok_1',
  project_id: 'proj_1',
  end_user: 'ann',
  session: null,
  trace_id: null,
  tags: ['team:blue'],
  model: 'acme/large',
  provider: 'acme',
  target: 'acme/large',
  status: 503,
  error: 'upstream_error',
  total_ms: 1_200,
  cost: 0.02,
  ...given,
})

describe('the filters of the request log', () => {
  it('are all conditions of the admin API, each with a label', () => {
    expect([...FILTER_NAMES].sort()).toEqual(Object.keys(REQUEST_CONDITIONS).sort() as (typeof FILTER_NAMES)[number][])
    expect(FILTERS.map(({ name }) => name)).toEqual([...FILTER_NAMES])
  })

  it('are read from an address without what is empty or unknown', () => {
    expect(filtersOf({ model: ' acme/large ', status: '', range: '7d', nothing: 'x' })).toEqual({ model: 'acme/large' })
  })

  it('say what is wrong with a value', () => {
    expect(troubleOf('status', '4xx')).toBeUndefined()
    expect(troubleOf('status', '600')).toContain('429')
    expect(troubleOf('min_ms', '-1')).toBe('A number.')
    expect(troubleOf('model', ' ')).toBe('Type a value.')
  })

  it('guess what a pasted text is', () => {
    const guessed = ['0af7651916cd43dd8448eb211c80319c', 'tok_1', 'proj_1', '5xx', 'req_1'].map(filterOfText)
    expect(guessed).toEqual(['trace_id', 'token', 'project', 'status', 'request_id'])
  })

  it('decide about a live event as the search does', () => {
    const met = [
      { status: '5xx' },
      { status: '503' },
      { error: 'any' },
      { tag: 'team:blue' },
      { token: 'tok_1', project: 'proj_1', user: 'ann' },
      { min_ms: '1200', min_cost: '0.02' },
    ]
    const missed = [
      { status: '4xx' },
      { error: 'timeout' },
      { tag: 'team' },
      { min_ms: '1201' },
      { session: 'x' },
      { model: 'acme' },
    ]
    expect(met.filter((filters) => !meets(row(), filters))).toEqual([])
    expect(missed.filter((filters) => meets(row(), filters))).toEqual([])
    expect(meets(row({ cost: null }), { min_cost: '0' })).toBe(false)
  })
})

describe('the live tail', () => {
  it('shows the newest rows first, and never more than it can show', () => {
    const live = new LiveRows()
    for (let at = 1; at <= 5_000; at++) live.add(row({ total_ms: at }))
    const { rows, seen, waiting } = live.take({ isPaused: false })
    expect([rows.length, seen, waiting]).toEqual([MAX_LIVE_ROWS, 5_000, 0])
    expect([rows[0]?.row.total_ms, rows.at(-1)?.row.total_ms]).toEqual([5_000, 5_001 - MAX_LIVE_ROWS])
    live.add(row({ total_ms: 9_000 }))
    const next = live.take({ isPaused: false }).rows
    expect([next.length, next[0]?.row.total_ms, next[1]?.row.total_ms]).toEqual([MAX_LIVE_ROWS, 9_000, 5_000])
  })

  it('stands still while it is paused, and counts what waits', () => {
    const live = new LiveRows()
    live.add(row())
    const before = live.take({ isPaused: false }).rows
    for (let at = 0; at < 700; at++) live.add(row())
    expect(live.take({ isPaused: true })).toMatchObject({ rows: before, waiting: 700, seen: 701 })
    expect(live.take({ isPaused: false })).toMatchObject({ waiting: 0, seen: 701 })
  })

  it('keeps only what meets the filters, and counts what was lost', () => {
    const live = new LiveRows({ status: '2xx' })
    expect([live.add(row()), live.add(row({ status: 200 }))]).toEqual([false, true])
    live.lose(3)
    expect(live.take({ isPaused: false })).toMatchObject({ seen: 1, dropped: 3 })
  })
})
