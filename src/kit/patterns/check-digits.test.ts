/** Numbers with check digits: a published example of each kind, and the same with one digit changed. */
import { describe, expect, it } from 'bun:test'
import {
  isBsn,
  isCard,
  isCodiceFiscale,
  isCpf,
  isDni,
  isGermanTaxId,
  isIban,
  isNir,
  isPersonnummer,
  isPesel,
  isUsSsn,
} from './check-digits.ts'

const EXAMPLES: [(text: string) => boolean, string, string][] = [
  [isCard, '4111 1111 1111 1111', '4111 1111 1111 1112'],
  [isIban, 'GB82 WEST 1234 5698 7654 32', 'GB82 WEST 1234 5698 7654 33'],
  [isUsSsn, '219-09-9999', '666-09-9999'],
  [isCpf, '111.444.777-35', '111.444.777-36'],
  [isGermanTaxId, '86095742719', '86095742718'],
  [isDni, '12345678Z', '12345678A'],
  [isNir, '2 55 08 14 168 025 38', '2 55 08 14 168 025 39'],
  [isCodiceFiscale, 'RSSMRA85T10A562S', 'RSSMRA85T10A562T'],
  [isBsn, '111222333', '111222334'],
  [isPesel, '44051401359', '44051401358'],
  [isPersonnummer, '19811228-9874', '19811228-9875'],
]

describe('check digits', () => {
  it.each(EXAMPLES)('%p accepts %p and rejects %p', (check, valid, wrong) => {
    expect([check(valid), check(wrong)]).toEqual([true, false])
  })
})
