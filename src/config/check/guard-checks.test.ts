import { describe, expect, it } from 'bun:test'
import type { GuardConfig } from '../schema/guard-schema.ts'
import { checkGuards } from './guard-checks.ts'
import { violationsOf } from './problem.ts'

const problemsOf = (guard: GuardConfig) =>
  violationsOf((report) => checkGuards({ guards: { g: guard } }, report)).map(
    ({ path, message }) => `${path.join('.')} ${message}`,
  )

const SCHEMAS: [string, Record<string, unknown>, string | undefined][] = [
  ['fits', { type: 'object', $defs: { a: { type: 'integer' } }, properties: { a: { $ref: '#/$defs/a' } } }, undefined],
  ['is of an older draft', { $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }, undefined],
  ['has an unknown type', { type: 'text' }, '/type must be equal to one of the allowed values'],
  ['has a pattern that RE2 has not', { pattern: '(?=a)' }, 'invalid or unsupported Perl syntax'],
  ['refers to nothing', { $ref: '#/$defs/b' }, '$ref: nothing is at "#/$defs/b"'],
  ['refers to another address', { $ref: 'https://x.test/s' }, '$ref: nothing is at "https://x.test/s"'],
  ['is of no draft', { $schema: 'https://x.test/s' }, '$schema: must be one of'],
  ['has patterns of names', { patternProperties: {} }, 'patternProperties is not supported'],
]

describe('the configuration of a guard', () => {
  for (const [title, schema, problem] of SCHEMAS)
    it(`${problem ? 'is refused' : 'is accepted'} where its schema ${title}`, () => {
      const problems = problemsOf({ kind: 'schema', schema })
      if (problem === undefined) expect(problems).toEqual([])
      else expect(problems).toEqual([expect.stringContaining(problem)])
    })

  it('has settings of a format only with that format', () => {
    const service: GuardConfig = { kind: 'webhook', url: 'https://checks.example' }
    expect(problemsOf({ ...service, format: 'presidio', action: 'replace', language: 'de', key: 'k' })).toEqual([])
    expect(problemsOf({ ...service, format: 'lakera', severity: 2 })).toEqual([
      'guards.g.severity is a setting of the format azure_text',
    ])
    expect(problemsOf({ ...service, key: 'k' })).toHaveLength(1)
    expect(problemsOf({ ...service, format: 'lakera', secret: `whsec_${'a'.repeat(32)}` })).toEqual([
      'guards.g.secret is a setting of a webhook without `format`',
    ])
  })

  it('has a key or credentials of AWS, which only bedrock takes', () => {
    const aws = { access_key_id: 'a', secret_access_key: 'b', region: 'eu-central-1' }
    const service: GuardConfig = { kind: 'webhook', url: 'https://checks.example', aws }
    expect(problemsOf({ ...service, format: 'bedrock' })).toEqual([])
    expect(problemsOf({ ...service, format: 'bedrock', key: 'k' })).toEqual([
      'guards.g.aws cannot be beside key; keep one of them',
    ])
    expect(problemsOf({ ...service, format: 'lakera' })).toEqual(['guards.g.aws is a setting of the format bedrock'])
  })

  it('needs a schema, of answers, and has no settings of another kind', () => {
    expect(problemsOf({ kind: 'schema' })).toEqual(['guards.g needs `schema`: without it every answer fits'])
    expect(problemsOf({ kind: 'schema', schema: {}, on: ['output', 'input'] })).toEqual([
      'guards.g.on.1 must be output: a schema describes answers',
    ])
    expect(problemsOf({ kind: 'patterns', words: ['a'], repair: true })).toEqual([
      'guards.g.repair is a setting of kind schema, not of patterns',
    ])
  })
})
