import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import type { ModelConfig } from '../config/schema/schema.ts'
import { matchesGlob } from '../kit/glob.ts'
import type { Provider } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import { catalogueModel, createCatalogue } from './catalogue.ts'

const clock = manualClock(1_000_000 * 1000)
const NOW = 1_000_000
const chatty = { id: 'p', kind: 'test', chat: {} } as Provider
const mute = { id: 'q', kind: 'test' } as Provider

const callerOf = (...patterns: string[]): Caller => ({
  token_id: 't',
  mayUseModel: (id) => patterns.some((pattern) => matchesGlob(pattern, id)),
  mayUseFamily: (family) => family !== 'rerank',
})
const anyone = callerOf('*')

function catalogueOf(models: Record<string, ModelConfig & { provider?: Provider }>) {
  const catalogue = createCatalogue({ clock })
  catalogue.replace(
    Object.entries(models).map(([id, { provider = chatty, ...config }]) =>
      catalogueModel({ id, config, targets: [{ provider, model: id }], created: 7, when_retired: 'refuse' }),
    ),
  )
  return catalogue
}

function codeOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error.code
    throw error
  }
  return 'none'
}

describe('a model as clients see it (2.1)', () => {
  test('has every required field and omits the empty ones', () => {
    expect(catalogueOf({ 'p/m': {} }).find('p/m', anyone)).toEqual({
      id: 'p/m',
      object: 'model',
      created: 7,
      owned_by: 'p',
      supported_endpoint_types: ['chatcompat', 'chatcompat-response', 'messages-compat', 'contentgen-compat'],
      status: 'active',
    })
  })

  test('has its dates and successor if they are configured', () => {
    const life = { deprecated_at: 5, retired_at: NOW + 10, replaced_by: 'p/n' }
    expect(catalogueOf({ 'p/m': life, 'p/n': {} }).find('p/m', anyone)).toMatchObject({ ...life, status: 'deprecated' })
  })

  test('is owned by the part before the first slash, or by its whole id', () => {
    const catalogue = catalogueOf({ 'a/b/c': {}, plain: {} })
    expect(catalogue.find('a/b/c', anyone).owned_by).toBe('a')
    expect(catalogue.find('plain', anyone).owned_by).toBe('plain')
  })

  test('declares only families that one of its targets serves', () => {
    const families = ['chatcompat', 'embeddings'] as const
    const catalogue = catalogueOf({ 'p/m': { families: [...families] }, 'q/m': { provider: mute } })
    expect(catalogue.find('p/m', anyone).supported_endpoint_types).toEqual(['chatcompat'])
    expect(catalogue.find('q/m', anyone).supported_endpoint_types).toEqual([])
  })
})

describe('finding a model', () => {
  const catalogue = catalogueOf({ 'p/m': {}, 'q/m': {}, 'q/only': {}, 'a/b/c': {}, zero: {} })

  test('the list is sorted by id and contains what the token may use', () => {
    expect(catalogue.list(anyone).map((model) => model.id)).toEqual(['a/b/c', 'p/m', 'q/m', 'q/only', 'zero'])
    expect(catalogue.list(callerOf('q/*')).map((model) => model.id)).toEqual(['q/m', 'q/only'])
    expect(catalogue.list(callerOf())).toEqual([])
  })

  test('works by full id, and by the part after the first slash', () => {
    expect(catalogue.find('q/only', anyone).id).toBe('q/only')
    expect(catalogue.find('only', anyone).id).toBe('q/only')
    expect(catalogue.find('b/c', anyone).id).toBe('a/b/c')
    expect(codeOf(() => catalogue.find('c', anyone))).toBe('model_not_found')
  })

  test('an ambiguous short name is rejected with the candidates that the token may use', () => {
    expect(codeOf(() => catalogue.find('m', anyone))).toBe('ambiguous_model')
    expect(() => catalogue.find('m', anyone)).toThrow('p/m, q/m')
    expect(catalogue.find('m', callerOf('p/*')).id).toBe('p/m')
  })

  test('returns only the families that the token may use, and no model without one', () => {
    const chats = ['chatcompat', 'chatcompat-response', 'messages-compat', 'contentgen-compat'] as const
    const mine = catalogueOf({
      'p/all': { families: [...chats] },
      'p/one': { families: ['messages-compat'] },
      'p/none': { provider: mute },
    })
    const caller: Caller = { ...anyone, mayUseFamily: (family) => family === 'chatcompat' }
    const listed = mine.list(caller).map(({ id, supported_endpoint_types }) => [id, supported_endpoint_types])
    expect(listed).toEqual([
      ['p/all', ['chatcompat']],
      ['p/none', []],
    ])
    expect(mine.find('p/all', caller).supported_endpoint_types).toEqual(['chatcompat'])
    expect(codeOf(() => mine.find('p/one', caller))).toBe('model_not_allowed')
    expect(mine.list(anyone).find(({ id }) => id === 'p/all')?.supported_endpoint_types).toEqual([...chats])
  })

  describe('the error for an unknown name', () => {
    const near = catalogueOf({
      'p/large': {},
      'p/larger': {},
      'q/medium': {},
      'p/olden': { status: 'retired' },
      'q/ranker': { families: ['rerank'], provider: { id: 'q', kind: 'test', rerank: {} } as Provider },
    })
    const messageFor = (name: string, caller: Caller) => {
      try {
        near.require(name, 'chatcompat', caller)
      } catch (error) {
        if (error instanceof GatewayError) return error.message
      }
      return ''
    }

    test('names the model that was probably meant', () => {
      expect(messageFor('p/lrage', anyone)).toBe(
        'There is no model "p/lrage"; did you mean "p/large"? GET /v1/models lists the models of this token.',
      )
      expect(messageFor('p/other', anyone)).toBe(
        'There is no model "p/other". GET /v1/models lists the models of this token.',
      )
    })

    test('names no model that the token may not use, by its id or by its families', () => {
      expect(messageFor('medum', anyone)).toContain('did you mean "q/medium"?')
      expect(messageFor('medum', callerOf('p/*'))).not.toContain('q/')
      expect(messageFor('p/lrager', callerOf('p/large'))).toContain('did you mean "p/large"?')
      expect(messageFor('q/rankr', anyone)).not.toContain('q/ranker')
    })

    test('names no retired model', () => {
      expect(messageFor('p/older', anyone)).not.toContain('p/olden')
    })

    test('names an alias that the token may use', () => {
      const catalogue = createCatalogue({ clock })
      const row = catalogueModel({
        id: 'p/large',
        config: {},
        targets: [{ provider: chatty, model: 'large' }],
        created: 7,
        when_retired: 'refuse',
      })
      catalogue.replace([row], [{ key: 'team/default', alias_of: 'p/large' }])
      expect(() => catalogue.find('team/defalt', anyone)).toThrow('did you mean "team/default"?')
      expect(() => catalogue.find('team/defalt', callerOf('p/x'))).toThrow('There is no model "team/defalt". GET')
    })
  })

  test('a model that the token may not use is forbidden, and an unknown one is not found', () => {
    expect(codeOf(() => catalogue.find('p/m', callerOf('q/*')))).toBe('model_not_allowed')
    expect(codeOf(() => catalogue.find('only', callerOf('p/*')))).toBe('model_not_allowed')
    expect(codeOf(() => catalogue.find('nowhere', anyone))).toBe('model_not_found')
  })
})

describe('selecting a model for a request', () => {
  const past = { retired_at: NOW }
  const catalogue = catalogueOf({
    'p/m': {},
    'q/m': { provider: mute },
    'old/refuse': { ...past, replaced_by: 'p/m' },
    'old/serve': { ...past, when_retired: 'serve' },
    'old/redirect': { ...past, when_retired: 'redirect', replaced_by: 'old/between' },
    'old/between': { ...past, replaced_by: 'p/m' },
    'old/loop': { ...past, when_retired: 'redirect', replaced_by: 'old/loop' },
    'soon/retired': { retired_at: NOW + 60 },
    'by/hand': { status: 'retired' },
  })
  const choose = (name: string, caller = anyone) => catalogue.require(name, 'chatcompat', caller)

  test('a model of another family is rejected', () => {
    expect(codeOf(() => choose('q/m'))).toBe('unsupported_endpoint')
    expect(codeOf(() => catalogue.require('p/m', 'rerank', anyone))).toBe('unsupported_endpoint')
  })

  describe('without a name', () => {
    const reranker = { id: 'r', kind: 'test', rerank: {} } as Provider
    const rerankers = catalogueOf({
      'a/chat': {},
      'b/retired': { provider: reranker, families: ['rerank'], status: 'retired' },
      'd/last': { provider: reranker, families: ['rerank'] },
      'c/first': { provider: reranker, families: ['rerank'] },
    })
    const first = (...patterns: string[]) =>
      rerankers.require(undefined, 'rerank', { ...callerOf(...patterns), mayUseFamily: () => true }).model.id

    test('selects the first model of the list that serves the family and is not retired', () => {
      expect(first('*')).toBe('c/first')
    })

    test('selects the first of those that the token may use', () => {
      expect(first('a/*', 'd/*')).toBe('d/last')
    })

    test('requires a name if the token may use none', () => {
      expect(codeOf(() => first('a/*', 'b/*'))).toBe('model_not_found')
      expect(() => first('a/*')).toThrow('"model"')
    })

    test('is rejected for a token that may not use the family', () => {
      expect(codeOf(() => rerankers.require(undefined, 'rerank', anyone))).toBe('model_not_allowed')
    })
  })

  test('a token that may not use the family is rejected', () => {
    const caller = { ...anyone, mayUseFamily: () => false }
    expect(codeOf(() => choose('p/m', caller))).toBe('model_not_allowed')
  })

  test('a retired model is rejected with its successor, served, or redirected, as configured', () => {
    expect(codeOf(() => choose('old/refuse'))).toBe('model_retired')
    expect(() => choose('old/refuse')).toThrow('p/m')
    expect(choose('old/serve').model.id).toBe('old/serve')
    expect(choose('old/redirect')).toMatchObject({ model: { id: 'p/m' }, requested: { id: 'old/redirect' } })
    expect(codeOf(() => choose('by/hand'))).toBe('model_retired')
  })

  test('a redirect never forms a cycle, nor leads to a model that the token may not use', () => {
    expect(codeOf(() => choose('old/loop'))).toBe('model_retired')
    expect(codeOf(() => choose('old/redirect', callerOf('old/*')))).toBe('model_not_allowed')
  })

  describe('the successor of a retired model', () => {
    const chain = catalogueOf({
      'a/first': { status: 'retired', replaced_by: 'a/second', when_retired: 'refuse' },
      'a/second': { status: 'retired', replaced_by: 'third' },
      'a/third': { retired_at: NOW + 3_600, replaced_by: 'a/fourth' },
      'a/fourth': {},
      'a/served': { status: 'retired', replaced_by: 'a/second', when_retired: 'serve' },
      'a/loop': { status: 'retired', replaced_by: 'a/loop' },
      'a/far': { status: 'retired', replaced_by: 'elsewhere/model' },
      'a/dead': { status: 'retired', replaced_by: 'a/loop' },
    })
    const named = (id: string) => chain.find(id, anyone).replaced_by
    const refusal = (id: string): Partial<GatewayError> => {
      try {
        chain.require(id, 'chatcompat', anyone)
      } catch (error) {
        return error as GatewayError
      }
      return {}
    }

    // As the operator wrote it: `third` is the short name of `a/third`.
    test('is the first of the chain that is not retired, in the error, the list and for the headers', () => {
      expect(refusal('a/first')).toMatchObject({
        code: 'model_retired',
        message: 'The model "a/first" is retired. Use "third" instead.',
        detail: { replaced_by: 'third' },
      })
      expect([named('a/first'), named('a/second')]).toEqual(['third', 'third'])
      expect(chain.require('a/served', 'chatcompat', anyone).requested.replaced_by).toBe('third')
      expect(chain.list(anyone).find(({ id }) => id === 'a/served')?.replaced_by).toBe('third')
    })

    test('is the configured one where the chain does not lead to a model of the catalogue that is not retired', () => {
      expect([named('a/far'), named('a/loop'), named('a/dead')]).toEqual(['elsewhere/model', 'a/loop', 'a/loop'])
      expect(refusal('a/dead').detail?.replaced_by).toBe('a/loop')
    })

    test('changes when it is retired itself', () => {
      expect(named('a/third')).toBe('a/fourth')
      clock.advance(3_600_000)
      expect([named('a/first'), named('a/second'), named('a/third')]).toEqual(['a/fourth', 'a/fourth', 'a/fourth'])
      clock.advance(-3_600_000)
    })
  })

  test('dates change the status without a restart', () => {
    expect(choose('soon/retired').model.id).toBe('soon/retired')
    clock.advance(60_000)
    expect(codeOf(() => choose('soon/retired'))).toBe('model_retired')
  })
})
