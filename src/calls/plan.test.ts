import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { catalogueModel, createCatalogue } from '../models/catalogue.ts'
import type { Provider } from '../providers/provider.ts'
import type { Gate } from './call.ts'
import { createPlans, MAX_PLANS } from './plan.ts'

const provider: Provider = { id: 'p', kind: 'test', rerank: {} as Provider['rerank'] & object }
const newCaller = () => ({ token_id: 'tok_a', mayUseModel: () => true, mayUseFamily: () => true })
const gate = (name: string, applies?: Gate['applies']): Gate => ({
  name,
  admit: () => undefined,
  ...(applies ? { applies } : {}),
})

function plansOf(config: Partial<Parameters<typeof catalogueModel>[0]['config']> = {}, gates: Gate[] = []) {
  const clock = manualClock()
  const catalogue = createCatalogue({ clock })
  const targets = [{ provider, model: 'm' }]
  const rows = ['a/b', 'a/c'].map((id) =>
    catalogueModel({
      id,
      config: { families: ['rerank'], ...config },
      targets,
      created: 0,
      when_retired: 'serve',
    }),
  )
  catalogue.replace(rows, [{ key: 'team/*', alias_of: 'a/b' }])
  let resolved = 0
  const plans = createPlans({
    catalogue: {
      ...catalogue,
      require(name, family, caller) {
        resolved++
        return catalogue.require(name, family, caller)
      },
    },
    gates,
    clock,
  })
  const caller = newCaller()
  const of = (name = 'a/b', by = caller) => plans.of(by, name, 'rerank')
  return { of, revision: catalogue.revision, catalogue, rows, clock, resolved: () => resolved }
}

describe('a plan', () => {
  it('is made at the first call of a caller at a model and used for the next ones', () => {
    const { of, resolved } = plansOf()
    const plan = of()
    expect(of()).toBe(plan)
    expect(plan).toMatchObject({ name: 'a/b', family: 'rerank', model: { id: 'a/b' }, has_fallbacks: false })
    expect(of('a/c')).not.toBe(plan)
    expect(of('a/b', newCaller())).not.toBe(plan)
    expect(resolved()).toBe(3)
  })

  it('is made anew after a change of the catalogue, of an override, and of anything else that is counted', () => {
    const { of, revision, catalogue, rows } = plansOf()
    const changes = [
      () => catalogue.replace(rows),
      () => catalogue.disable(new Set(['a/b'])),
      () => {
        revision.current++
      },
    ]
    for (const change of changes) {
      const before = of()
      change()
      expect(of()).not.toBe(before)
    }
    expect(of().model.targets).toEqual([])
  })

  it('is made anew when a model reaches one of its dates, and when the clock is set back', () => {
    const { of, clock } = plansOf({ deprecated_at: Date.UTC(2026, 0, 1) / 1000 + 60 })
    const before = of()
    expect(before.headers).toEqual({})
    clock.advance(59_999)
    expect(of()).toBe(before)
    clock.advance(1)
    expect(of().headers).toHaveProperty('deprecation')
    clock.jump(-60_000)
    expect(of().headers).toEqual({})
  })

  it('has only the gates that apply to the caller at the model', () => {
    const { of } = plansOf({}, [gate('always'), gate('never', () => false), gate('at b', (_, { id }) => id === 'a/b')])
    expect(of('a/b').gates.map(({ name }) => name)).toEqual(['always', 'at b'])
    expect(of('a/c').gates.map(({ name }) => name)).toEqual(['always'])
  })

  it('is not kept where the caller may not use the model', () => {
    const { of, resolved } = plansOf()
    for (let count = 0; count < 2; count++) expect(() => of('a/unknown')).toThrow('a/unknown')
    expect(resolved()).toBe(2)
  })
})

it('plans are bounded in number: one more drops those before it', () => {
  const { of, resolved } = plansOf()
  const first = of()
  for (let count = 1; count < MAX_PLANS; count++) of(`team/${count}`)
  expect(of()).toBe(first)
  expect(resolved()).toBe(MAX_PLANS)
  of(`team/${MAX_PLANS}`)
  expect(of()).not.toBe(first)
  expect(resolved()).toBe(MAX_PLANS + 2)
})
