import { describe, expect, test } from 'bun:test'
import { configOf } from '../../test/kit/gateway.ts'
import { patternWarnings } from './pattern-warnings.ts'

const config = configOf({
  providers: {
    acme: { base_url: 'http://127.0.0.1:9/v1' },
    listed: { base_url: 'http://127.0.0.1:9/v1', discover: true },
    openai: { preset: 'openai', key: 'sk-0123456789', discover: true },
  },
  models: { 'acme/large': {}, 'acme/small': {}, 'team/default': { alias_of: 'acme/large' } },
})
const warningsFor = (...patterns: string[]) =>
  patternWarnings(patterns, { config, environment: {}, seen: ['local/llama-3'] })

describe('a pattern of a token', () => {
  test.each([
    ['all models', '*'],
    ['a model of the file', 'acme/large'],
    ['an alias', 'team/default'],
    ['models of the sandbox', 'sandbox/*'],
    ['a model that a gateway has discovered before', 'local/llama-3'],
    ['a well-known model', 'openai/gpt-*'],
    ['a model of a provider whose list is not known', 'listed/anything'],
    ['any part of an id', '*large'],
  ])('is not warned of for %s', (_, pattern) => {
    expect(warningsFor(pattern)).toEqual([])
  })

  test.each([
    ['acme/larg', '; did you mean "acme/large"?'],
    ['acem/*', '; did you mean "acme/*"?'],
    ['sandbx/gen*', '; did you mean "sandbox/gen*"?'],
    ['mistral/*', ''],
    ['sandbox/none*', ''],
    ['huge', ''],
    ['large', '; did you mean "acme/large"?'],
  ])('that matches no model is warned of: %s', (pattern, hint) => {
    expect(warningsFor(pattern)).toEqual([`--models: "${pattern}" matches no model of this gateway${hint}`])
  })

  test('of a provider whose key is in the environment is not warned of with discovery', () => {
    const parts = { config: { ...config, discover: true }, environment: { GROQ_API_KEY: 'gsk_0123456789' }, seen: [] }
    expect(patternWarnings(['groq/any'], parts)).toEqual([])
    expect(patternWarnings(['groq/any'], { ...parts, config })).toHaveLength(1)
  })
})
