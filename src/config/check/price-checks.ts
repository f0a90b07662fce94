/** Checks of prices that a schema cannot express: the order of dates and tiers, and entries that could never match. */
import type { Path } from '../load/read-yaml.ts'
import { type Price, type Prices, priceList, startOf } from '../schema/price-schema.ts'
import type { FileConfig } from '../schema/schema.ts'

type PriceProblem = { path: Path; part: 'key' | 'value'; message: string }
type Report = (path: Path, message: string) => void

/** Members that failed the schema are undefined and skipped. */
export function checkPrices({ models = {}, ledger }: FileConfig): PriceProblem[] {
  const out: PriceProblem[] = []
  const report: Report = (path, message) => void out.push({ path, part: 'value', message })
  for (const [id, model] of Object.entries(models)) {
    if (model?.prices) checkAll(['models', id, 'prices'], model.prices, report)
    for (const [index, target] of (model?.targets ?? []).entries()) {
      if (target?.prices) checkAll(['models', id, 'targets', index, 'prices'], target.prices, report)
    }
  }
  const own = ledger?.currency ?? 'USD'
  for (const name of Object.keys(ledger?.exchange_rates ?? {})) {
    const path = ['ledger', 'exchange_rates', name]
    if (name === own) report(path, 'is the currency of the ledger, which needs no rate')
    else if (!/^[A-Z]{3}$/.test(name)) report(path, `found "${name}", must be a currency such as CNY (ISO 4217)`)
  }
  return out
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
  unreachable(
    images,
    ({ size, quality }) => [size, quality],
    (index, other) =>
      report([...at, 'images', index], `can never count, because images[${other}] matches the same images before it`),
  )
  unreachable(
    video_seconds,
    ({ size, sound }) => [size, sound],
    (index, other) =>
      report(
        [...at, 'video_seconds', index],
        `can never count, because video_seconds[${other}] matches the same videos before it`,
      ),
  )
}

/** Of a list in which the first match counts: entries behind one that is at least as wide. */
function unreachable<Entry>(
  entries: readonly (Entry | undefined)[],
  criteriaOf: (entry: Entry) => readonly unknown[],
  found: (index: number, other: number) => void,
): void {
  const seen: { index: number; criteria: readonly unknown[] }[] = []
  for (const [index, entry] of entries.entries()) {
    if (entry === undefined) continue
    const criteria = criteriaOf(entry)
    const wider = seen.find((one) => one.criteria.every((value, at) => value === undefined || value === criteria[at]))
    if (wider) found(index, wider.index)
    seen.push({ index, criteria })
  }
}
