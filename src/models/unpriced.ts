/** Reports the models whose price is unknown: their calls have no amount in the ledger, and no budget can count them. */
import type { Log } from '../kit/log.ts'
import { priceAt } from '../spec/price.ts'
import type { CatalogueModel } from './catalogue.ts'

type Named = Pick<CatalogueModel, 'id' | 'prices'>

/** How many are named: enough to recognise what they have in common. */
const MOST_NAMES = 3

/** None is configured, none is in force yet, or its currency has no exchange rate. */
function isUnpriced({ prices }: Named, now: number): boolean {
  const version = prices && priceAt(prices, now)
  return version === undefined || Number.isNaN(version.request)
}

/** Logs one line about all of them, and no line where they are the same as the last time. `now`: unix seconds. */
export function createUnpricedReport(log: Pick<Log, 'info'>): (models: readonly Named[], now: number) => void {
  let reported = ''
  return (models, now) => {
    const names = models.filter((model) => isUnpriced(model, now)).map(({ id }) => id)
    const all = names.join()
    if (names.length > 0 && all !== reported) {
      log.info('models without a price', { models: names.length, such_as: names.slice(0, MOST_NAMES).join(', ') })
    }
    reported = all
  }
}
