import { expect, it } from 'bun:test'
import { rulesOf } from './rules.ts'

it('finds cards and IBANs whose groups have spaces or hyphens that do not break lines', () => {
  const rules = rulesOf({ kind: 'redact' })
  for (const separator of [' ', '-', '\u00a0', '\u202f', '\u2011', '']) {
    const values = [
      ['4111', '1111', '1111', '1111'],
      ['DE89', '3704', '0044', '0532', '0130', '00'],
    ]
    const found = values.map((groups) =>
      rules.find(`of ${groups.join(separator)}.`).flatMap((span) => span.found?.text ?? []),
    )
    expect(found).toEqual(values.map((groups) => [groups.join(separator)]))
  }
  expect(rules.find('4111\u00a01111\u00a01111\u00a01112').some(({ found }) => found)).toBe(false)
})
