/** A source of Bifrost, in the form of the tables of its configuration store. */
import type { Row } from './sql-dump.ts'

export type BifrostProvider = { name: string; path: string; row: Row; keys: { row: Row; path: string }[] }
export type BifrostOwner = { row: Row; path: string; budgets: Row[]; limit: Row | undefined }
/** What a virtual key may use of a provider. `models`: undefined for all but those that are `blocked`. */
export type BifrostShare = {
  provider: string
  models: string[] | undefined
  blocked: readonly string[]
  hasKeys: boolean
  isLimitedToKeys: boolean
  hasLimits: boolean
}
export type Bifrost = {
  providers: BifrostProvider[]
  virtualKeys: (BifrostOwner & { shares: BifrostShare[] })[]
  teams: BifrostOwner[]
  customers: BifrostOwner[]
}
