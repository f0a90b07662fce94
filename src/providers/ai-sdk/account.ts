/** Who we are at a vendor: the key, the address and what else the configuration says, checked. */
import type { Timeouts } from '../../config/schema.ts'
import { settingsOf } from '../settings.ts'
import type { AiSdkParts, AiSdkVendor } from './vendor.ts'

export type Account = {
  id: string
  /** Empty where the vendor needs none of the configuration's. */
  key: string
  /** Where the vendor is for us, without a trailing slash. */
  base_url: string
  /** Sent with every request, names in lower case. */
  headers: Record<string, string>
  timeouts: Required<Timeouts>
}

type Vendor = Pick<AiSdkVendor, 'home' | 'key_env' | 'needsNoKey' | 'hosts'>

/** Throws an Error that names the provider and says what would be right. */
export function accountOf({ id, config, timeouts, environment = {} }: AiSdkParts, vendor: Vendor): Account {
  const { key: ownKey, preset: _, ...rest } = config
  const key = ownKey ?? vendor.key_env.map((name) => environment[name]).find((value) => value) ?? ''
  // Behind an address of the operator's own, somebody else may add the key.
  if (key === '' && !vendor.needsNoKey && config.base_url === undefined) {
    throw new Error(`providers.${id} needs a key: write key, or set ${vendor.key_env.join(' or ')}`)
  }
  if (!/^[\x21-\x7e]*$/.test(key)) {
    // a header value: anything else could not be sent
    throw new Error(`providers.${id}.key holds a space, a line break or a character outside ASCII`)
  }
  const settings = settingsOf({ id, config: { ...rest, base_url: config.base_url ?? vendor.home }, timeouts })
  return {
    id,
    key,
    base_url: settings.base_url,
    headers: settings.headers,
    timeouts: settings.timeouts,
  }
}

/** An address below `from` as the same below `to`; any other as it is. */
export function moved(url: string, from: string, to: string): string {
  const next = url[from.length]
  const isBelow = url.startsWith(from) && (next === undefined || next === '/' || next === '?')
  return isBelow ? to + url.slice(from.length) : url
}

/** Whether a request to this address may carry the key. */
export function isOwn(url: string, { base_url }: Account, { hosts }: Pick<Vendor, 'hosts'>): boolean {
  const asked = URL.parse(url)
  if (!asked) return false
  return (
    asked.origin === new URL(base_url).origin || (asked.protocol === 'https:' && hosts?.test(asked.hostname) === true)
  )
}
