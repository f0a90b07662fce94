/** Checks of prices that a schema cannot express: the order of dates and tiers, and entries that could never match. */
import type { Path } from '../load/read-yaml.ts'
import { type Price, type Prices, priceList, startOf } from '../schema/price-schema.ts'
import type { FileConfig } from '../schema/schema.ts'
import { placesOf } from './path-pattern.ts'
import type { Report } from './problem.ts'

/** Members that failed the schema are undefined and skipped. */
export function checkPrices(config: FileConfig, report: Report): void {
  for (const pattern of ['models.*.prices', 'models.*.targets.*.prices'])
    for (const { path, value } of placesOf<Prices>(config, pattern)) checkAll(path, value, report)
  const own = config.ledger?.currency ?? 'USD'
  for (const name of Object.keys(config.ledger?.exchange_rates ?? {})) {
    const path = ['ledger', 'exchange_rates', name]
    if (name === own) report(path, 'is the currency of the ledger, which needs no rate')
    else if (!/^[A-Z]{3}$/.test(name)) report(path, `found "${name}", must be a currency such as CNY (ISO 4217)`)
  }
}

function checkAll(path: Path, prices: Prices, report: Report): void {
  const isList = Array.isArray(prices)
  let last: Price | undefined
  for (const [index, price] of priceList(prices).entries()) {
    if (price === undefined) continue
    const at = isList ? [...path, index] : path
    checkStart({ at, price, last, report })
    checkOne(at, price, report)
    last = price
  }
}

type StartParts = { at: Path; price: Price; last: Price | undefined; report: Report }

function checkStart({ at, price, last, report }: StartParts): void {
  const start = startOf(price)
  if (start === undefined) report([...at, 'from'], `found "${price.from}", which is no date`)
  if (start === undefined || last === undefined) return
  if (price.from === undefined) {
    report(at, 'needs `from`: only the first of several prices may count from always')
    return
  }
  const before = startOf(last)
  if (before !== undefined && start <= before) {
    report([...at, 'from'], `found "${price.from}", must be after that of the entry before it, "${last.from}"`)
  }
}

function checkOne(at: Path, { tiers = [], images = [], video_seconds = [] }: Price, report: Report): void {
  let last: number | undefined
  for (const [index, tier] of tiers.entries()) {
    const above = tier?.above_input_tokens
    if (above === undefined) continue
    if (last !== undefined && above <= last) {
      report(
        [...at, 'tiers', index, 'above_input_tokens'],
        `found ${above}, must be above ${last} of the tier before it`,
      )
    }
    last = above
  }
  checkReached(
    [...at, 'images'],
    images.map((one) => one && [one.size, one.quality]),
    report,
  )
  checkReached(
    [...at, 'video_seconds'],
    video_seconds.map((one) => one && [one.size, one.sound]),
    report,
  )
}

const PRICED: Record<string, string> = { images: 'images', video_seconds: 'videos' }

/** Of a list in which the first match counts: entries behind one that is at least as wide. */
function checkReached(path: Path, entries: readonly (readonly unknown[] | undefined)[], report: Report): void {
  const name = String(path.at(-1))
  for (const [index, criteria] of entries.entries()) {
    const isWider = (one: readonly unknown[] | undefined) =>
      one?.every((value, at) => value === undefined || value === criteria?.[at])
    const other = criteria ? entries.slice(0, index).findIndex(isWider) : -1
    if (other >= 0)
      report([...path, index], `can never count, because ${name}[${other}] matches the same ${PRICED[name]} before it`)
  }
}
