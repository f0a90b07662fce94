import { describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { sampleFromSchema } from './json-schema-sample.ts'
import type { Hints } from './json-schema-scalars.ts'
import { createRandom } from './random.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
const noHints = (): Hints => ({ terms: [], numbers: [], used: { terms: 0, numbers: 0 } })

/** Samples of several seeds, each checked by an independent validator. */
function samples(schema: unknown, seeds = 25): unknown[] {
  const validate = ajv.compile(schema as object)
  return Array.from({ length: seeds }, (_, seed) => {
    const sample = sampleFromSchema(schema, createRandom(String(seed)), noHints())
    if ('problem' in sample) throw new Error(`${sample.problem}: ${JSON.stringify(schema)}`)
    if (!validate(sample.value)) {
      throw new Error(
        `${JSON.stringify(sample.value)} against ${JSON.stringify(schema)}: ${ajv.errorsText(validate.errors)}`,
      )
    }
    return sample.value
  })
}

const problem = (schema: unknown): string => {
  const sample = sampleFromSchema(schema, createRandom('x'), noHints())
  return 'problem' in sample ? sample.problem : `none: ${JSON.stringify(sample.value)}`
}

const order = {
  type: 'object',
  properties: {
    id: { type: 'string', format: 'uuid' },
    customer: { $ref: '#/$defs/person' },
    lines: {
      type: 'array',
      minItems: 1,
      maxItems: 4,
      items: {
        type: 'object',
        properties: {
          sku: { type: 'string', pattern: '^[A-Z]{3}-\\d{4}$' },
          amount: { type: 'integer', minimum: 1, maximum: 9 },
          price: { type: 'number', exclusiveMinimum: 0, maximum: 99.5, multipleOf: 0.5 },
        },
        required: ['sku', 'amount', 'price'],
        additionalProperties: false,
      },
    },
    state: { enum: ['open', 'paid', 'sent'] },
    note: { type: ['string', 'null'], minLength: 3, maxLength: 12 },
    version: { const: 2 },
  },
  required: ['id', 'customer', 'lines', 'state', 'note', 'version'],
  additionalProperties: false,
  $defs: {
    person: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1 },
        manager: { anyOf: [{ $ref: '#/$defs/person' }, { type: 'null' }] },
      },
      required: ['name', 'manager'],
      additionalProperties: false,
    },
  },
}

const VALID: Record<string, unknown> = {
  'an order as structured-output clients send it': order,
  'nothing at all': {},
  'the schema true': true,
  'a string': { type: 'string' },
  'a string of an exact length': { type: 'string', minLength: 40, maxLength: 40 },
  'a very short string': { type: 'string', maxLength: 1 },
  'an empty string': { type: 'string', maxLength: 0 },
  'an integer between bounds that exclude themselves': { type: 'integer', exclusiveMinimum: 3, exclusiveMaximum: 5 },
  'a large multiple': { type: 'integer', minimum: 1000, multipleOf: 7 },
  'a decimal multiple': { type: 'number', minimum: 0.2, maximum: 0.4, multipleOf: 0.1 },
  'a narrow range': { type: 'number', exclusiveMinimum: 1.5, exclusiveMaximum: 1.50001 },
  'a negative range': { type: 'number', maximum: -12 },
  'one number': { type: 'number', minimum: 4, maximum: 4 },
  'a tuple': { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false },
  'a tuple with a tail': { type: 'array', prefixItems: [{ const: 1 }], items: { type: 'boolean' }, minItems: 3 },
  'different items of few': { type: 'array', items: { enum: [1, 2, 3] }, uniqueItems: true, minItems: 3 },
  'different booleans': { type: 'array', items: { type: 'boolean' }, uniqueItems: true, minItems: 2 },
  'an array that contains': { type: 'array', items: { type: 'integer' }, contains: { const: 7 }, minItems: 3 },
  'an array of nothing': { type: 'array', items: false },
  'many items': { type: 'array', items: { type: 'integer' }, minItems: 500 },
  'one of two that overlap': {
    oneOf: [
      { type: 'number', multipleOf: 3 },
      { type: 'number', multipleOf: 5 },
    ],
  },
  'all of two': {
    allOf: [
      { type: 'object', properties: { a: { type: 'string', minLength: 2 } }, required: ['a'] },
      { type: 'object', properties: { b: { type: 'integer' }, a: { maxLength: 4 } }, required: ['b'] },
    ],
  },
  'all of, beside anyOf': {
    type: 'object',
    required: ['k'],
    allOf: [{ properties: { k: { type: 'string' } } }],
    anyOf: [{ required: ['x'] }, { required: ['y'] }],
  },
  'what is not a string': { not: { type: 'string' } },
  'a string that is not one of': { type: 'string', not: { enum: ['sample', 'simulated', 'example'] } },
  'if, then': {
    type: 'object',
    properties: { kind: { enum: ['a', 'b'] } },
    required: ['kind'],
    if: { properties: { kind: { const: 'a' } } },
    // biome-ignore lint/suspicious/noThenProperty: the keyword has this name
    then: { required: ['a'] },
    else: { required: ['b'] },
  },
  'a map': { type: 'object', additionalProperties: { type: 'integer' } },
  'a map of at least two': { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 2 },
  'a map with short names': { type: 'object', propertyNames: { maxLength: 3, pattern: '^[a-z]+$' }, minProperties: 3 },
  'members by pattern': {
    type: 'object',
    patternProperties: { '^x_\\d+$': { type: 'boolean' } },
    additionalProperties: false,
    minProperties: 1,
  },
  'few members of many': { type: 'object', properties: { a: {}, b: {}, c: {}, d: {} }, maxProperties: 2 },
  'members that need others': {
    type: 'object',
    properties: { card: {}, address: { type: 'string' } },
    dependentRequired: { card: ['address'] },
  },
  'members that change the rest': {
    type: 'object',
    properties: { card: { const: 1 } },
    dependentSchemas: { card: { required: ['city'], properties: { city: { type: 'string' } } } },
  },
  'a list that refers to itself': {
    $ref: '#/$defs/n',
    $defs: {
      n: {
        type: 'object',
        properties: { value: { type: 'integer' }, next: { anyOf: [{ $ref: '#/$defs/n' }, { type: 'null' }] } },
        required: ['value', 'next'],
      },
    },
  },
  'a tree that refers to itself twice': {
    type: 'object',
    properties: { kids: { type: 'array', items: { $ref: '#' } }, left: { $ref: '#' }, right: { $ref: '#' } },
  },
  'an expression that must branch': {
    $ref: '#/$defs/e',
    $defs: {
      e: {
        oneOf: [
          {
            type: 'object',
            properties: { op: { const: '+' }, l: { $ref: '#/$defs/e' }, r: { $ref: '#/$defs/e' } },
            required: ['op', 'l', 'r'],
          },
          { type: 'object', properties: { op: { const: 'lit' }, v: { type: 'number' } }, required: ['op', 'v'] },
        ],
      },
    },
  },
  'a reference with escapes': { $ref: '#/$defs/a~1b%20c', $defs: { 'a/b c': { type: 'integer', minimum: 5 } } },
  'the old tuple spelling is ignored by the new draft, and fits both': {
    type: 'array',
    prefixItems: [{ type: 'null' }],
  },
  'a member called __proto__': JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"integer"}},"required":["__proto__"]}',
  ),
  'types inferred from keywords': { properties: { a: { items: { minimum: 3 } } }, required: ['a'] },
  'a union of enum and const': { anyOf: [{ enum: ['a', null] }, { const: { deep: [1] } }] },
}

describe('a value from a JSON Schema', () => {
  for (const [name, schema] of Object.entries(VALID)) {
    test(`fits: ${name}`, () => {
      expect(samples(schema)).toHaveLength(25)
    })
  }

  test('is the same for the same seed, and differs between seeds', () => {
    const [first, again] = [samples(order), samples(order)]
    expect(first).toEqual(again)
    expect(new Set(first.map((value) => JSON.stringify(value))).size).toBeGreaterThan(20)
  })

  test('uses the terms and numbers of the hints where they fit', () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', maximum: 9 } },
      required: ['city', 'days'],
    }
    const hints = { terms: ['Paris'], numbers: [3], used: { terms: 0, numbers: 0 } }
    expect(sampleFromSchema(schema, createRandom('1'), hints)).toEqual({ value: { city: 'Paris', days: 3 } })
  })

  test('of a recursive schema ends within a few levels', () => {
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0
    for (const value of samples(VALID['a tree that refers to itself twice'])) expect(depth(value)).toBeLessThan(12)
  })

  test.each([
    ['date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/],
    ['date', /^\d{4}-\d\d-\d\d$/],
    ['time', /^\d\d:\d\d:\d\dZ$/],
    ['duration', /^PT\d+M$/],
    ['email', /^[^@\s]+@[^@\s]+\.example$/],
    ['hostname', /^[a-z]+\.example$/],
    ['ipv4', /^192\.0\.2\.\d{1,3}$/],
    ['ipv6', /^2001:db8::[0-9a-f]{1,4}$/],
    ['uri', /^https:\/\/[a-z]+\.example\/\S+$/],
    ['uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/],
  ])('has the form of format %s', (format, form) => {
    for (const value of samples({ type: 'string', format })) expect(String(value)).toMatch(form)
  })

  test.each([
    [false, 'no value'],
    [{ type: 'string', minLength: 5, maxLength: 4 }, 'no value'],
    [{ allOf: [{ type: 'string' }, { type: 'integer' }] }, 'no value'],
    [{ type: 'string', pattern: '(?=a)b' }, 'pattern'],
    [{ $ref: '#/$defs/absent' }, '$ref'],
    [{ $ref: 'https://example.com/schema' }, '$ref'],
    [{ type: 'wrong' }, 'type'],
    [{ $ref: '#' }, 'no value'],
    [{ type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }, ''],
    [{ type: 'array', items: { type: 'boolean' }, uniqueItems: true, minItems: 3 }, 'no value'],
    [{ type: 'string', minLength: 10_001 }, 'no value'],
    [{ type: 'array', minItems: 2001 }, 'no value'],
  ])('%j is rejected with a reason', (schema, reason) => {
    expect(problem(schema)).not.toStartWith('none')
    expect(problem(schema)).toContain(reason)
  })

  test('has the maximum length of strings and arrays', () => {
    expect(String(samples({ type: 'string', minLength: 10_000 }, 1)[0]).length).toBeGreaterThanOrEqual(10_000)
    expect(samples({ type: 'array', items: { type: 'integer' }, minItems: 2000 }, 1)[0]).toHaveLength(2000)
  })

  test('is given up soon for a schema that would take forever', () => {
    const wide = { anyOf: Array.from({ length: 30 }, () => ({ $ref: '#/$defs/a' })) }
    const bombs = [
      { ...wide, $defs: { a: { allOf: [wide, wide, { type: 'string' }, { type: 'integer' }] } } },
      { type: 'string', pattern: '^(((a?){900}){900}){900}b$', minLength: 3000 },
      {
        type: 'array',
        minItems: 2000,
        items: { type: 'array', minItems: 2000, items: { type: 'array', minItems: 2000 } },
      },
      { type: 'array', minItems: 2000, items: { const: 'x'.repeat(500_000) } },
      {
        allOf: [
          { type: 'string', pattern: '^(a+)+$' },
          { type: 'string', pattern: '^a{40}b$' },
        ],
      },
    ]
    for (const bomb of bombs) {
      const start = performance.now()
      problem(bomb)
      expect(performance.now() - start).toBeLessThan(2000)
    }
  })

  test('fits random schemas', () => {
    const { schema } = fc.letrec<{ schema: object; leaf: object }>((tie) => ({
      leaf: fc.oneof(
        fc.record({ type: fc.constant('string'), minLength: fc.nat(5), maxLength: fc.integer({ min: 5, max: 9 }) }),
        fc.record({
          type: fc.constant('integer'),
          minimum: fc.integer({ min: -50, max: 0 }),
          exclusiveMaximum: fc.integer({ min: 1, max: 60 }),
        }),
        fc.record({
          type: fc.constant('number'),
          multipleOf: fc.constantFrom(0.5, 2, 0.1),
          minimum: fc.integer({ min: -9, max: 9 }),
        }),
        fc.record({ type: fc.constant(['boolean', 'null']) }),
        fc.record({
          enum: fc.uniqueArray(fc.oneof(fc.integer(), fc.string(), fc.constant(null)), { minLength: 1, maxLength: 4 }),
        }),
        fc.record({ const: fc.jsonValue() }),
        fc.constantFrom({ type: 'string', format: 'date' }, { type: 'string', pattern: '^[a-f]{2,5}(-x|y)?$' }, {}),
      ),
      schema: fc.oneof(
        { maxDepth: 4, depthSize: 'small' },
        tie('leaf'),
        fc.record({
          type: fc.constant('array'),
          items: tie('schema'),
          minItems: fc.nat(2),
          maxItems: fc.integer({ min: 2, max: 5 }),
        }),
        fc.record({
          type: fc.constant('array'),
          prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }),
          items: fc.constant(false),
        }),
        fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 4 }).chain((names) =>
          fc.record({
            type: fc.constant('object'),
            properties: fc
              .tuple(...names.map(() => tie('schema')))
              .map((members) => Object.fromEntries(names.map((name, at) => [name, members[at]]))),
            required: fc.subarray(names),
            additionalProperties: fc.constantFrom(false, true, { type: 'integer' }),
          }),
        ),
        fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
        tie('schema').map((inner) => ({ allOf: [inner, {}], description: 'twice' })),
        tie('schema').map((inner) => ({
          $defs: {},
          oneOf: [inner, { type: 'object', required: ['never seen'], properties: { 'never seen': { const: 1 } } }],
        })),
      ),
    }))
    fc.assert(
      fc.property(schema, fc.string(), (generated, seed) => {
        const validate = ajv.compile(generated)
        const sample = sampleFromSchema(generated, createRandom(seed), noHints())
        return 'value' in sample && validate(sample.value)
      }),
      { numRuns: 1000, seed: 7 },
    )
  })
})

/** Schemas that took from 4 s to 5 minutes of the thread that serves every request. */
const many = <T>(count: number, of: (at: number) => T) => Array.from({ length: count }, (_, at) => of(at))
const members = (count: number, name: (at: number) => string) => Object.fromEntries(many(count, (at) => [name(at), {}]))
const listOf = (items: unknown, more: object = {}) => ({ type: 'array', minItems: 2000, items, ...more })
const HOSTILE: [string, unknown][] = [
  ['long texts', listOf({ type: 'string', minLength: 10_000 })],
  ['long texts that fit', { type: 'array', minItems: 100, items: { type: 'string', minLength: 10_000 } }],
  ['long names', { type: 'object', minProperties: 2000, propertyNames: { minLength: 9_000 } }],
  ['a long reference', listOf({ $ref: `#/${'a/'.repeat(500_000)}` })],
  [
    'many members',
    listOf({ $ref: '#/$defs/x' }, { $defs: { x: { type: 'object', properties: members(50_000, String) } } }),
  ],
  [
    'many merged members',
    listOf(
      { $ref: '#/$defs/x' },
      { $defs: { x: { allOf: many(300, (at) => ({ properties: members(300, (other) => `${at}_${other}`) })) } } },
    ),
  ],
  ['many alternatives', listOf({ anyOf: many(50_000, () => ({ type: 'null' })) })],
  ['many alternatives that exclude each other', { oneOf: many(5_000, () => ({ type: 'null' })) }],
  ['many patterns', { type: 'object', minProperties: 2000, patternProperties: members(20_000, (at) => `^p${at}`) }],
  ['many required members', { type: 'object', required: ['a'], dependentRequired: { a: many(100_000, String) } }],
  ['repeated patterns', { type: 'string', pattern: '^(x+x+)+y$', minLength: 1000 }],
]

describe('a schema of a hostile client', () => {
  test.each(HOSTILE)('with %s takes a bounded time', (_, schema) => {
    const before = process.cpuUsage()
    sampleFromSchema(schema, createRandom('x'), noHints())
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(1_500)
  })
})
