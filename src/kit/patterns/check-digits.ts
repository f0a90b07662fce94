/** Check digits of numbers that identify people, accounts and cards. Each takes the text of a match, separators included. */

const digitsOf = (text: string): number[] => [...text.replace(/\D/g, '')].map(Number)

const weighted = (digits: readonly number[], weights: readonly number[]): number =>
  weights.reduce((sum, weight, at) => sum + weight * (digits[at] ?? 0), 0)

const isRepeated = (digits: readonly number[]): boolean => digits.every((one) => one === digits[0])

/** ISO/IEC 7812-1. */
function luhn(text: string): boolean {
  const digits = digitsOf(text)
  let sum = 0
  for (let at = digits.length - 1, isDoubled = false; at >= 0; at--, isDoubled = !isDoubled) {
    const digit = (digits[at] ?? 0) * (isDoubled ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0 && !isRepeated(digits)
}

/** A payment card: 13 to 19 digits. */
export function isCard(text: string): boolean {
  const { length } = digitsOf(text)
  return length >= 13 && length <= 19 && luhn(text)
}

/** Lengths of some registries (ISO 13616); of others only the check digits are checked. */
const IBAN_LENGTHS: Readonly<Record<string, number>> = {
  AT: 20, BE: 16, CH: 21, CZ: 24, DE: 22, DK: 18, ES: 24, FI: 18, FR: 27, GB: 22, IE: 22, IT: 27, LU: 20, NL: 18,
  NO: 15, PL: 28, PT: 25, SE: 24,
} // biome-ignore format: a table

/** ISO 13616: moved to the end, letters as numbers, the remainder by 97 is 1. */
export function isIban(text: string): boolean {
  const iban = text.replace(/[^A-Za-z0-9]/g, '').toUpperCase()
  const length = IBAN_LENGTHS[iban.slice(0, 2)]
  if (length === undefined ? iban.length < 15 || iban.length > 34 : iban.length !== length) return false
  let rest = 0
  for (const sign of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(sign, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

/** https://www.ssa.gov/employer/randomization.html: areas 000, 666 and 900 to 999, group 00 and serial 0000 are not used. */
export function isUsSsn(text: string): boolean {
  const [area = '', group = '', serial = ''] = text.split(/[- ]/)
  return area !== '000' && area !== '666' && area < '900' && group !== '00' && serial !== '0000'
}

/** Brazil: two digits by remainders of 11. */
export function isCpf(text: string): boolean {
  const digits = digitsOf(text)
  if (digits.length !== 11 || isRepeated(digits)) return false
  const check = (length: number) => {
    const sum = digits.slice(0, length).reduce((total, digit, at) => total + digit * (length + 1 - at), 0)
    return ((sum * 10) % 11) % 10
  }
  return check(9) === digits[9] && check(10) === digits[10]
}

/** Germany, Steueridentifikationsnummer: ISO/IEC 7064, MOD 11,10; one digit of the first ten stands two or three times. */
export function isGermanTaxId(text: string): boolean {
  const digits = digitsOf(text)
  if (digits.length !== 11 || digits[0] === 0) return false
  const counts = Map.groupBy(digits.slice(0, 10), (digit) => digit)
  const repeated = [...counts.values()].filter(({ length }) => length > 1)
  if (repeated.length !== 1 || (repeated[0]?.length ?? 0) > 3) return false
  let product = 10
  for (const digit of digits.slice(0, 10)) {
    const sum = (digit + product) % 10 || 10
    product = (2 * sum) % 11
  }
  return (11 - product) % 10 === digits[10]
}

/** Spain, DNI and NIE: the letter is the remainder by 23. */
export function isDni(text: string): boolean {
  const id = text.replace(/[- ]/g, '').toUpperCase()
  const number = Number(id.slice(0, -1).replace(/^[XYZ]/, (first) => String('XYZ'.indexOf(first))))
  return 'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23] === id.at(-1)
}

/** France, NIR: 97 minus the remainder by 97; Corsica's departments count as 19 and 18. */
export function isNir(text: string): boolean {
  const id = text.replace(/\s/g, '').toUpperCase()
  if (id.length !== 15) return false
  const number = id.slice(0, 13).replace('2A', '19').replace('2B', '18')
  return /^\d{13}$/.test(number) && 97 - Number(BigInt(number) % 97n) === Number(id.slice(13))
}

/** Italy, codice fiscale: values of the signs in odd places (Decreto ministeriale 23 December 1976). */
const ODD_VALUES = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]

export function isCodiceFiscale(text: string): boolean {
  const id = text.toUpperCase()
  const signValue = (sign: string) => (sign >= 'A' ? sign.charCodeAt(0) - 65 : Number(sign))
  let sum = 0
  for (let at = 0; at < 15; at++) {
    const value = signValue(id[at] ?? '0')
    sum += at % 2 === 0 ? (ODD_VALUES[value] ?? 0) : value
  }
  return String.fromCharCode(65 + (sum % 26)) === id[15]
}

/** The Netherlands, burgerservicenummer: the sum by weights is a multiple of 11. */
export function isBsn(text: string): boolean {
  const digits = digitsOf(text)
  return digits.length === 9 && !isRepeated(digits) && weighted(digits, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0
}

/** Poland, PESEL; the month has the century added. */
export function isPesel(text: string): boolean {
  const digits = digitsOf(text)
  const month = (((digits[2] ?? 0) * 10 + (digits[3] ?? 0)) % 20) - 1
  const day = (digits[4] ?? 0) * 10 + (digits[5] ?? 0)
  if (digits.length !== 11 || month < 0 || month > 11 || day < 1 || day > 31) return false
  return weighted(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0
}

/** Sweden, personnummer: the last ten digits, by Luhn. */
export const isPersonnummer = (text: string): boolean => luhn(text.replace(/\D/g, '').slice(-10))
