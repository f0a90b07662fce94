/** POST /admin/v1/guards/test: what guards would do with a text. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import { type AdminGateway, startAdminGateway } from './kit/admin.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const GUARDS: Record<string, GuardConfig> = {
  watch: { kind: 'patterns', words: ['falcon'], mode: 'observe', order: 2 },
  'no-secrets': { kind: 'patterns', on: ['input'], patterns: ['project-falcon'], order: 3 },
  private: { kind: 'redact', restore: true, order: 1 },
  short: { kind: 'limits', on: ['output'], max_characters: 5 },
  shape: { kind: 'schema', schema: { type: 'object' }, repair: true },
  asks: { kind: 'webhook', url: 'https://checks.example/guard' },
}

async function start(): Promise<AdminGateway> {
  const gateway = await startAdminGateway({ guards: GUARDS, models: { 'sandbox/general': { guards: ['no-secrets'] } } })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

type Tried = { results: { name: string; outcome: string | null; text: string | null }[] }
const outcomes = ({ results }: Tried) => results.map(({ name, outcome }) => `${name} ${outcome}`)
const PATH = '/guards/test'

describe('POST /admin/v1/guards/test', () => {
  it('returns the outcome of each guard that is named, in order, and what it leaves of the text', async () => {
    const gateway = await start()
    const text = 'Ask ann@example.com about project-falcon'
    const { results } = await gateway.read<Tried>(PATH, {
      json: { text, guards: ['no-secrets', 'watch', 'private', 'asks'] },
    })
    expect(results).toEqual([
      { name: 'asks', outcome: null, text },
      { name: 'private', outcome: 'replaced', text: 'Ask [EMAIL_1] about project-falcon' },
      { name: 'watch', outcome: 'would_block', text },
      { name: 'no-secrets', outcome: 'blocked', text: null },
    ])
    expect(gateway.logged()).not.toContain('ann@example.com')
  })

  it('tries all guards, those of a model, and a text as one of an answer', async () => {
    const gateway = await start()
    const of = (json: object) => gateway.read<Tried>(PATH, { json })
    expect((await of({ text: 'fine' })).results).toHaveLength(6)
    expect(outcomes(await of({ text: 'fine', model: 'sandbox/general' }))).toEqual(['no-secrets passed'])
    expect(outcomes(await of({ text: 'fine', model: 'sandbox/vision' }))).toEqual([])
    const answer = { on: 'output', guards: ['short', 'no-secrets'] }
    expect(outcomes(await of({ text: '12345', ...answer }))).toEqual(['short passed', 'no-secrets null'])
    expect(outcomes(await of({ text: '123456', ...answer }))).toEqual(['short blocked', 'no-secrets null'])
  })

  it('tries a text as an answer that must fit a schema, and asks nobody to repair it', async () => {
    const gateway = await start()
    const of = async (text: string) =>
      (await gateway.read<Tried>(PATH, { json: { text, on: 'output', guards: ['shape'] } })).results
    expect(await of('{}')).toEqual([{ name: 'shape', outcome: 'passed', text: '{}' }])
    expect(await of('```json\n{}\n```')).toEqual([{ name: 'shape', outcome: 'replaced', text: '{}' }])
    expect(await of('[]')).toEqual([{ name: 'shape', outcome: 'blocked', text: null }])
  })

  it('refuses unknown names and a text that is too long', async () => {
    const gateway = await start()
    for (const [json, status, code, param] of [
      [{ text: 'x', guards: ['nope'] }, 400, 'invalid_value', 'guards'],
      [{ text: 'x', model: 'nope' }, 404, 'model_not_found', 'model'],
      [{ text: 'x'.repeat(100_001) }, 400, 'invalid_value', 'text'],
    ] as const) {
      const response = await gateway.admin(PATH, { json })
      const { error } = await response.json()
      expect([response.status, error.code, error.param]).toEqual([status, code, param])
    }
    const most = { text: 'x'.repeat(100_000), guards: ['watch'] }
    expect(outcomes(await gateway.read<Tried>(PATH, { json: most }))).toEqual(['watch passed'])
  })
})
