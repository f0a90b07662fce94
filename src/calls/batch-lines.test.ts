import { describe, expect, test } from 'bun:test'
import type { Catalogue } from '../models/catalogue.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import { createUploadCheck, knownProblems } from './batch-lines.ts'

const caller = {} as Caller

/** A catalogue that serves these models. */
const serving = (...models: string[]) => ({
  catalogue: {
    require(name: string | undefined) {
      if (!models.includes(name ?? '')) throw new GatewayError('model_not_found', 'There is no such model.')
      return { model: {} }
    },
  } as unknown as Pick<Catalogue, 'require'>,
  caller,
})

const lineOf = (custom_id: string, model = 'a/b', url = '/v1/embeddings') =>
  JSON.stringify({ custom_id, method: 'POST', url, body: { model, input: 'x' } })

function check(lines: string[], cut: number): string | null {
  const found = createUploadCheck(serving('a/b'))
  const bytes = Buffer.from(lines.join('\n'))
  for (let at = 0; at < bytes.length; at += cut) found.push(bytes.subarray(at, at + cut))
  return found.end()
}

describe('the check of an upload', () => {
  test('finds the same problems wherever its bytes are cut', () => {
    const lines = [lineOf('1'), '{}', '', lineOf('1'), lineOf('2', 'a/c'), lineOf('3', 'a/b', '/v1/chat/completions')]
    const whole = check(lines, 1_000_000)
    for (let cut = 1; cut < 200; cut++) expect(check(lines, cut)).toBe(whole)
    const { problems, ...rest } = JSON.parse(whole ?? '')
    expect(rest).toEqual({ total: 5, endpoint: '/v1/embeddings', refused: ['a/c'] })
    expect(problems.map(({ line, code }: { line: number; code: string }) => [line, code])).toEqual([
      [2, 'missing_required_parameter'],
      [4, 'duplicate_custom_id'],
      [5, 'model_not_found'],
      [6, 'url_mismatch'],
    ])
  })

  test('stores nothing of a file without problems', () => {
    expect(check([lineOf('1'), lineOf('2')], 50)).toBeNull()
  })

  test('holds for batches of its endpoint, while its models are refused', () => {
    const problems = check([lineOf('1', 'a/c')], 50)
    const known = (endpoint: string, ...models: string[]) =>
      knownProblems({ problems }, { ...serving(...models), endpoint })?.problems.map(({ code }) => code)
    expect(known('/v1/embeddings', 'a/b')).toEqual(['model_not_found'])
    expect(known('/v1/embeddings', 'a/b', 'a/c')).toBeUndefined()
    expect(known('/v1/completions', 'a/b')).toBeUndefined()
  })

  test('holds for batches of any endpoint where no line names one', () => {
    const problems = check(['{}', lineOf('1', 'a/b', '/v1/videos')], 50)
    const found = knownProblems({ problems }, { ...serving(), endpoint: '/v1/completions' })
    expect(found?.problems.map(({ param }) => param)).toEqual(['custom_id', 'url'])
  })

  test('keeps no long text of its input', () => {
    const long = 'x'.repeat(100_000)
    const lines = Array.from({ length: 200 }, (_, at) => lineOf(at % 2 ? long : `${at}`, `${long}${at}`))
    expect(check(lines, 1_000_000)?.length).toBeLessThan(100_000)
  })
})
