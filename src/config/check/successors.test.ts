import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { checkSuccessors, type SuccessorNode } from './successors.ts'

const NOW = 1_000
const check = (models: Record<string, SuccessorNode>, mayExist?: (id: string) => boolean) =>
  checkSuccessors({ models: new Map(Object.entries(models)), now: NOW, ...(mayExist ? { mayExist } : {}) })
const kinds = (models: Record<string, SuccessorNode>) => check(models).map(({ id, kind }) => `${id} ${kind}`)

describe('a successor', () => {
  test('is valid when it exists, is active and shares a family', () => {
    expect(check({ a: { status: 'retired', replaced_by: 'b' }, b: {} })).toEqual([])
    expect(
      check({ a: { families: ['rerank', 'chatcompat'], replaced_by: 'b' }, b: { families: ['chatcompat'] } }),
    ).toEqual([])
  })

  test('may have its family from its name or from its target', () => {
    const a = { families: ['embeddings'], replaced_by: 'b/text-embedding-x' }
    expect(check({ a, 'b/text-embedding-x': {} })).toEqual([])
    const c = { families: ['rerank'], replaced_by: 'd' }
    expect(check({ c, d: { targets: [{ model: 'bge-reranker' }] } })).toEqual([])
    expect(kinds({ c, d: { targets: [{ model: 'chatty' }] } })).toEqual(['c family'])
  })

  test('may be deprecated, and may have its own successor', () => {
    expect(check({ a: { replaced_by: 'b' }, b: { status: 'deprecated', replaced_by: 'c' }, c: {} })).toEqual([])
  })

  test('is rejected with a suggestion when it does not exist', () => {
    expect(check({ 'acme/large': { replaced_by: 'acme/larger-2' }, 'acme/larger': {} })).toEqual([
      {
        id: 'acme/large',
        kind: 'unknown',
        message: 'found "acme/larger-2", must be the id of a model; did you mean "acme/larger"?',
      },
    ])
  })

  test('is accepted when discovery may still find it', () => {
    expect(check({ a: { replaced_by: 'sandbox/x' } }, (id) => id.startsWith('sandbox/'))).toEqual([])
    expect(check({ a: { replaced_by: 'other/x' } }, (id) => id.startsWith('sandbox/'))).toHaveLength(1)
  })

  test('is rejected when it is retired by status or by date, and accepted a second before', () => {
    expect(kinds({ a: { replaced_by: 'b' }, b: { status: 'retired' } })).toEqual(['a retired'])
    expect(kinds({ a: { replaced_by: 'b' }, b: { retired_at: NOW } })).toEqual(['a retired'])
    expect(kinds({ a: { replaced_by: 'b' }, b: { retired_at: NOW + 1 } })).toEqual([])
  })

  test('is valid when it is retired but leads to an active model', () => {
    expect(kinds({ a: { replaced_by: 'b' }, b: { status: 'retired', replaced_by: 'c' }, c: {} })).toEqual([])
  })

  test('is rejected at each link of a chain that ends at a retired model', () => {
    const retired = { status: 'retired' } as const
    expect(check({ a: { replaced_by: 'b' }, b: { ...retired, replaced_by: 'c' }, c: retired })).toEqual([
      {
        id: 'a',
        kind: 'retired',
        message: 'found "b", which leads to "c": retired itself; must lead to a model that is not',
      },
      { id: 'b', kind: 'retired', message: 'found "c": retired itself; must lead to a model that is not' },
    ])
  })

  test('is rejected when it has another family, also behind a retired one', () => {
    expect(check({ a: { replaced_by: 'b' }, b: { families: ['rerank'] } })[0]?.message).toBe(
      'found "b", which answers rerank; must answer one of: chatcompat',
    )
    const between = { status: 'retired', families: ['chatcompat', 'rerank'], replaced_by: 'c' } as const
    expect(kinds({ a: { replaced_by: 'b' }, b: between, c: { families: ['rerank'] } })).toEqual(['a family'])
    expect(kinds({ a: { replaced_by: 'b' }, b: { families: [] } })).toEqual([])
  })

  test('is rejected at every model of a cycle, and only there', () => {
    expect(check({ a: { replaced_by: 'a' } })[0]?.message).toBe('leads back to itself: a -> a')
    const circle = { b: { replaced_by: 'c' }, c: { replaced_by: 'd' }, d: { replaced_by: 'b' } }
    expect(kinds({ a: { replaced_by: 'b' }, ...circle })).toEqual(['b cycle', 'c cycle', 'd cycle'])
    expect(check(circle)[0]?.message).toBe('leads back to itself: b -> c -> d -> b')
  })

  test('may lead on through 100 models, and through no more', () => {
    const chain = (length: number): Record<string, SuccessorNode> =>
      Object.fromEntries([
        ...Array.from({ length }, (_, n): [string, SuccessorNode] => [`m${n}`, { replaced_by: `m${n + 1}` }]),
        [`m${length}`, {}],
      ])
    expect(kinds(chain(100))).toEqual([])
    expect(kinds(chain(102))).toEqual(['m0 long', 'm1 long'])
  })

  test('is rejected in a cycle of retired models', () => {
    expect(kinds({ a: { status: 'retired', replaced_by: 'b' }, b: { status: 'retired', replaced_by: 'a' } })).toEqual([
      'a cycle',
      'b cycle',
    ])
  })
})

test('leads from every model to an active one in any graph without problems', () => {
  const ids = ['a', 'b', 'c', 'd', 'e']
  const node = fc.record({
    status: fc.constantFrom<NonNullable<SuccessorNode['status']>>('active', 'deprecated', 'retired'),
    replaced_by: fc.option(fc.constantFrom(...ids, 'nowhere'), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.tuple(node, node, node, node, node), (nodes) => {
      const models = new Map<string, SuccessorNode>(nodes.map((one, index) => [ids[index] ?? '', one]))
      if (checkSuccessors({ models, now: NOW }).length > 0) return
      for (const start of models.values()) {
        let steps = 0
        for (let next = start.replaced_by; next !== undefined && steps <= ids.length; steps++) {
          const found = models.get(next)
          expect(found).toBeDefined()
          if (found?.replaced_by === undefined) expect(found?.status).not.toBe('retired')
          next = found?.replaced_by
        }
        expect(steps).toBeLessThanOrEqual(ids.length)
      }
    }),
    { numRuns: 500, seed: 1 },
  )
})
