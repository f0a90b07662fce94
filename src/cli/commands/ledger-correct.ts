/** `gatehouse ledger reconcile --correct`: corrects interrupted calls by the usage export of their provider. */
import { correctionsFor } from '../../calls/recording/corrections.ts'
import type { Config } from '../../config/config.ts'
import { chargeOf, compiledPrices } from '../../models/prices.ts'
import { nanoText } from '../../spec/price.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { VendorDay } from '../../store/ledger/ledger-store.ts'
import type { Store } from '../../store/store.ts'
import { table } from '../table.ts'
import type { ExportDay } from '../vendor-export.ts'

type Corrected = {
  /** As they are written, or would be. */
  adjustments: {
    entry_id: string
    call_id: string
    requests: number
    amount: number
    input_tokens: number
    output_tokens: number
  }[]
  left: { day: string; model: string; calls: number; reason: string }[]
}

type CorrectParts = {
  store: Store
  config: Config
  provider: string
  range: { from: number; to: number }
  days: readonly VendorDay[]
  exported: readonly ExportDay[]
  is_dry_run: boolean
}

export async function correct(parts: CorrectParts): Promise<Corrected> {
  const { store, config, provider, range, days, exported } = parts
  const interrupted = await store.ledger.interrupted({ ...range, provider })
  const { entries, left } = correctionsFor({ interrupted, days, exported, chargeFor: chargeBy(config) })
  if (!parts.is_dry_run && entries.length > 0) await store.ledger.append(entries)
  return {
    adjustments: entries.map(({ entry_id, call_id, requests, amount, units }) => ({
      entry_id,
      call_id,
      requests,
      amount: Number(nanoText(amount ?? 0)),
      input_tokens: units.input_tokens,
      output_tokens: units.output_tokens,
    })),
    left: left.map(({ day, ...one }) => ({ day: new Date(day * 1000).toISOString().slice(0, 10), ...one })),
  }
}

/** By the prices of the configuration, where these are the ones that the call had. */
function chargeBy({ models, ledger }: Config) {
  return (entry: LedgerEntry, units: { input_tokens: number; output_tokens: number }) => {
    const model = Object.hasOwn(models, entry.model) ? models[entry.model] : undefined
    const target = model?.targets?.find((one) => one.provider === entry.provider && one.model === entry.upstream_model)
    const { prices, pricesOf } = compiledPrices({ prices: model?.prices }, ledger)
    const at = Math.floor(entry.at_ms / 1000)
    const charge = chargeOf({ model: { prices }, target: { prices: pricesOf({ prices: target?.prices }) }, units, at })
    return charge.price === entry.price ? charge : undefined
  }
}

export function correctedText({ adjustments, left }: Corrected, is_dry_run: boolean): string {
  const parts: string[] = []
  const head = is_dry_run ? 'Would correct' : 'Corrected'
  if (adjustments.length === 0 && left.length === 0) return 'There are no interrupted calls to correct.\n'
  if (adjustments.length > 0) {
    const rows = adjustments.map((one) => [
      one.call_id,
      String(one.requests),
      String(one.input_tokens),
      String(one.output_tokens),
      String(one.amount),
    ])
    parts.push(`${head}:\n`, table([['CALL', 'REQUESTS', 'INPUT', 'OUTPUT', 'AMOUNT'], ...rows]))
  }
  if (left.length > 0) {
    const rows = left.map(({ day, model, calls, reason }) => [day, model, String(calls), reason])
    parts.push('Not corrected:\n', table([['DAY', 'MODEL', 'CALLS', 'BECAUSE'], ...rows]))
  }
  return parts.join('')
}
