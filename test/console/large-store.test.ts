/**
 * Every page over a store with many requests, 500 models and 10,000 tokens: what it asks the gateway for, and what the
 * gateway reads of the store, does not grow with them. `npm run bench:console` does the same with a million requests.
 */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { pages } from '../../console/src/pages/pages.ts'
import { describeInBrowser } from './support/chromium.ts'
import { boundsBroken, type Measured, type MeasuredConsole, openMeasured } from './support/measured.ts'

const PATTERNS = pages.map(({ path }) => path)

let opened: MeasuredConsole
const measured: Measured[] = []

describeInBrowser('the console over a large store', () => {
  beforeAll(async () => {
    opened = await openMeasured('wide', PATTERNS)
  })
  afterAll(() => opened?.close())

  it('opens each page with few calls, small answers, and few rows of the store', async () => {
    for (const path of opened.paths) measured.push(await opened.measure(path))
    const faults = measured.flatMap((page) => boundsBroken(page).map((fault) => `${page.path}: ${fault}`))
    expect(faults).toEqual([])
    // A page that shows nothing of the store would prove nothing.
    const shown = (path: string) => measured.find((page) => page.path === path)?.shown ?? 0
    for (const path of ['/requests', '/tokens', '/projects', '/sessions', '/usage'])
      expect(shown(path)).toBeGreaterThan(9)
  }, 900_000) // some 50 pages, one after the other

  it('reads no large table without an index, and none to its end', () => {
    const plans = opened.plans()
    expect(plans.some(({ plan }) => /SEARCH .* USING COVERING INDEX request_log_by_time/.test(plan))).toBe(true)
    expect(plans.filter(isScan)).toEqual([])
  })
})

const LARGE =
  'request_log|request_tags|request_sums|request_minutes|request_contents|tokens|tasks|audit|ledger_(?!starts)\\w+|examined'
const TABLE_SCAN = new RegExp(`SCAN (${LARGE})\\b(?! USING)`)
const INDEX_SCAN = new RegExp(`SCAN (${LARGE})\\b`)

/** Whether a statement reads a whole table: in any order, or in that of an index without a limit. */
const isScan = ({ statement, plan }: { statement: string; plan: string }): boolean =>
  TABLE_SCAN.test(withoutBounded(plan)) || (INDEX_SCAN.test(plan) && !/\blimit\b/i.test(statement))

/** A walk reads a bounded part of the rows first, and the rest of the statement reads only that part. */
const withoutBounded = (plan: string): string =>
  plan.replace(/CO-ROUTINE examined\n(SEARCH examined USING INDEX .*)\nSCAN examined/, '$1')
