/** Reads the options of One API and of New API: how much quota a dollar is, and which of the others are not carried. */
import { type Draft, membersOf } from './imported.ts'
import type { Row } from './sql-dump.ts'

/** Quota of a dollar where the option QuotaPerUnit is not set, in both. */
const USUAL_QUOTA = 500_000
const PRICES = 'prices are those of models, in money: models.<id>.prices, or gatehouse models import'
const GROUPS = 'a group has no price of its own: write the prices of the models'
const OPTIONS: Record<string, string> = {
  ModelRatio: PRICES,
  ModelPrice: PRICES,
  CompletionRatio: PRICES,
  CacheRatio: PRICES,
  CreateCacheRatio: PRICES,
  ImageRatio: PRICES,
  AudioRatio: PRICES,
  AudioCompletionRatio: PRICES,
  GroupRatio: GROUPS,
  GroupGroupRatio: GROUPS,
  AutoGroups: 'a group is a list of models of a token',
  RetryTimes: 'set models.<id>.routing.tries',
  ModelRequestRateLimitCount: 'set rate_limits of projects and tokens',
  ModelRequestRateLimitGroup: 'set rate_limits of projects and tokens',
}

/** How much quota a dollar is. Only changed options have a row. */
export function readOptions(draft: Draft, rows: readonly Row[]): number {
  let perDollar = USUAL_QUOTA
  const others: string[] = []
  for (const row of rows) {
    const name = String(row.key).slice(0, 80)
    const path = `options[${name}]`
    if (name === 'QuotaPerUnit') {
      const value = membersOf(draft, row, path).number('value')
      if (value !== undefined && value > 0) perDollar = value
      // With another one every amount would be wrong.
      else throw new Error(`${path}: it must be a number above 0`)
      draft.mapped(path, `${perDollar} of quota are a dollar`)
    } else if (Object.hasOwn(OPTIONS, name)) {
      if (row.value !== null && row.value !== '' && row.value !== '{}') draft.dropped(path, OPTIONS[name] ?? '')
    } else others.push(name)
  }
  if (others.length > 0)
    draft.dropped(`options: ${others.join(', ').slice(0, 2_000)}`, 'settings of its server and of its console')
  return perDollar
}
