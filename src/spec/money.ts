/** Money: whole nano-units of one currency (10^-9), so that sums are exact. */

export const NANO = 1_000_000_000

/** The greatest amount in units of the currency: above it, nano-units are no longer exact in a number. */
export const MAX_AMOUNT = 9_000_000

/** From an amount as people write it, such as 0.25; rounded to the nearest nano-unit. */
export const toNano = (amount: number): number => Math.round(amount * NANO)

export const fromNano = (nano: number): number => nano / NANO

/** A decimal number without an exponent and without trailing zeros, such as `0.00123`. */
export function nanoText(nano: number | bigint): string {
  if (typeof nano === 'number' && nano >= 0 && Number.isSafeInteger(nano)) return decimalText(String(nano))
  const value = BigInt(nano)
  return value < 0n ? `-${decimalText(String(-value))}` : decimalText(String(value))
}

function decimalText(nano: string): string {
  const digits = nano.padStart(10, '0')
  const point = digits.length - 9
  let end = digits.length
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end--
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`
}

const ZERO = 48
