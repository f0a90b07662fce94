import { describe, expect, test } from 'bun:test'
import { FileConfig } from '../schema/schema.ts'
import { isMarked, placesMarked, type Schema } from '../schema/schema-at.ts'
import { MASKED, shownValue } from './masking.ts'

const SECRET = 'sk-very-secret-0123456789'

/** The path of every place of the schema that may hold free text, `*` and 0 for the steps that are free. */
function textPlaces(schema: Schema, path: (string | number)[] = []): (string | number)[][] {
  if (schema.anyOf) return schema.anyOf.flatMap((one) => textPlaces(one, path))
  if (schema.properties) {
    return Object.entries(schema.properties).flatMap(([name, one]) => textPlaces(one, [...path, name]))
  }
  if (schema.patternProperties) {
    return Object.values(schema.patternProperties).flatMap((one) => textPlaces(one, [...path, 'any']))
  }
  if (schema.items) return textPlaces(schema.items, [...path, 0])
  const isClosed = schema.enum || schema.const !== undefined || /^(number|integer|boolean)$/.test(schema.type ?? '')
  return isClosed ? [] : [path]
}

const places = textPlaces(FileConfig as Schema)

describe('masking', () => {
  test('hides text at every place of the schema without a mark', () => {
    expect(places.length).toBeGreaterThan(60)
    const shown = places.filter((path) => shownValue(path, SECRET) !== MASKED)
    expect(shown.filter((path) => !isMarked('shown', path))).toEqual([])
    for (const path of [
      ['providers', 'a', 'key'],
      ['providers', 'a', 'keys', 0, 'key'],
      ['providers', 'a', 'headers', 'x-key'],
      ['providers', 'a', 'options', 'secretAccessKey'],
      ['providers', 'a', 'options', 'deep', 0, 'pin'],
      ['providers', 'a', 'request_defaults', 'user'],
      ['alerts', 'webhook', 'secret'],
      ['outputs', 's3', 'secret_access_key'],
      ['bootstrap_token'],
      ['admin_token'],
      ['contents_key'],
      ['contents_key_old'],
      ['some', 'new', 'setting'],
    ]) {
      expect([path, shownValue(path, SECRET)]).toEqual([path, MASKED])
    }
    expect(shownValue(['providers', 'a', 'options', 'pin'], 1234)).toBe(MASKED)
  })

  test('shows of an address what is no secret', () => {
    const address = `https://user:${SECRET}@api.example.com:8443/${SECRET}?key=${SECRET}#${SECRET}`
    for (const pattern of placesMarked('origin')) {
      const path = pattern.split('.').map((step) => (step === '*' ? 'any' : step))
      expect(shownValue(path, address)).toBe('https://api.example.com:8443')
      expect(shownValue(path, SECRET)).toBe(MASKED)
    }
    expect(shownValue(['store_url'], `postgres://u:${SECRET}@db:5432/x`)).toBe('postgres://db:5432')
  })

  test('shows numbers, switches, words of a list and names', () => {
    expect(shownValue(['server', 'port'], 8787)).toBe(8787)
    expect(shownValue(['sandbox'], false)).toBe(false)
    expect(shownValue(['providers', 'a', 'headers'], {})).toEqual({})
    expect(shownValue(['when_retired'], 'refuse')).toBe('refuse')
    expect(shownValue(['when_retired'], SECRET)).toBe(MASKED)
    expect(shownValue(['providers', 'a', 'calls', 'max'], 'adaptive')).toBe('adaptive')
    expect(shownValue(['providers', 'a', 'calls', 'max'], 9)).toBe(9)
    expect(shownValue(['models', 'a/b', 'targets', 0, 'provider'], 'a')).toBe('a')
    expect(shownValue(['models', 'a/b', 'prices', 'input'], 1.5)).toBe(1.5)
    expect(shownValue(['models', 'a/b', 'prices', 0, 'input'], 1.5)).toBe(1.5)
    expect(shownValue(['models', 'a/b', 'targets', 0, 'prices', 'currency'], 'CNY')).toBe('CNY')
  })

  test('shows the name of a variable instead of its value', () => {
    expect(shownValue(['providers', 'a', 'key'], SECRET, '${ACME_KEY}')).toBe('${ACME_KEY}')
    expect(shownValue(['providers', 'a', 'key'], SECRET, `\${ACME_KEY:-${SECRET}}`)).toBe(MASKED)
    expect(shownValue(['server', 'host'], SECRET, `${SECRET}\${ACME_KEY}`)).toBe(MASKED)
  })
})
