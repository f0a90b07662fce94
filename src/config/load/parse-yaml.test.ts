import { describe, expect, it } from 'bun:test'
import { LineCounter } from 'yaml'
import { MAXIMUM_DEPTH, MAXIMUM_NODES, parseBounded } from './parse-yaml.ts'
import { readYaml } from './read-yaml.ts'

const parse = (text: string) => parseBounded(text, new LineCounter())
const isParsed = (text: string) => 'document' in parse(text)
const troublesOf = (text: string) => readYaml(text, {}).troubles.map(({ message }) => message)
const TOO_MUCH = 'is nested too deeply or has too many values'

describe('parseBounded', () => {
  const nestings: [string, (depth: number) => string][] = [
    ['lists in brackets', (depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`],
    ['mappings in braces', (depth) => `${'{ a: '.repeat(depth - 1)}{}${' }'.repeat(depth - 1)}`],
    ['lists on one line', (depth) => `${'- '.repeat(depth)}a`],
    ['keys of keys', (depth) => `${'? '.repeat(depth)}a`],
    ['indented mappings', (depth) => Array.from({ length: depth }, (_, n) => `${' '.repeat(n)}a:`).join('\n')],
  ]

  it.each(nestings)('accepts %s up to the limit and none far above it', (_name, make) => {
    expect(isParsed(make(MAXIMUM_DEPTH - 1))).toBe(true)
    expect(isParsed(make(MAXIMUM_DEPTH + 3))).toBe(false)
  })

  it.each(nestings)('reads no more of %s than the limit needs', (_name, make) => {
    const parsed = parse(make(700))
    expect('offset' in parsed && parsed.offset).toBeLessThan(make(MAXIMUM_DEPTH + 4).length)
  })

  it('counts nodes', () => {
    expect(isParsed(`[${'1,'.repeat(MAXIMUM_NODES / 4)}1]`)).toBe(true)
    expect(isParsed(`[${'1,'.repeat(MAXIMUM_NODES * 3)}1]`)).toBe(false)
  })

  it('reports what the library reports', () => {
    expect(troublesOf('a: [')).toEqual([expect.stringContaining('not valid YAML')])
    expect(troublesOf('a: 1\n---\nb: 2\n')).toEqual(['a second document starts here; the file must have one'])
  })
})

describe('readYaml', () => {
  it('makes keys of names that every object inherits, merged ones too', () => {
    const { value } = readYaml('a: &a { __proto__: { x: 1 } }\nb: { <<: *a, constructor: 2 }\n__proto__: 3\n', {})
    expect(Object.keys(value as object)).toEqual(['a', 'b', '__proto__'])
    expect(Object.keys((value as { b: object }).b).toSorted()).toEqual(['__proto__', 'constructor'])
  })

  it('reports too much once, with its place', () => {
    expect(readYaml(`a: 1\nb: ${'['.repeat(20_000)}`, {}).troubles).toEqual([
      { line: 2, column: expect.any(Number), path: [], message: TOO_MUCH },
    ])
    expect(troublesOf(`[${'1,'.repeat(MAXIMUM_NODES)}]`)).toEqual([TOO_MUCH])
  })

  it('reports each key that is there twice, at its second place', () => {
    expect(readYaml('a: 1\nb: { c: 1, c: 2 }\na: 2\n', {}).troubles).toMatchObject([
      { line: 2, column: 12, message: 'duplicate key; each key may appear once' },
      { line: 3, column: 1, message: 'duplicate key; each key may appear once' },
    ])
  })

  it('accepts keys up to 512 characters', () => {
    expect(troublesOf(`${'k'.repeat(512)}: 1`)).toEqual([])
    expect(troublesOf(`${'k'.repeat(513)}: 1`)).toEqual(['a key has more than 512 characters'])
  })

  it('knows the place and the source of each value in a list of mappings', () => {
    const yaml = readYaml("a:\n  - b: '${X}'\n  - c: 2\n", { X: 'value-of-x' })
    expect([yaml.sourceAt(['a', 0, 'b']), yaml.sourceAt(['a', 1, 'c'])]).toEqual(['${X}', undefined])
    expect(yaml.placeOf(['a', 1, 'c'], 'key')).toEqual({ line: 3, column: 5 })
    expect(yaml.placeOf(['a', 1, 'missing'], 'value')).toEqual({ line: 3, column: 5 })
    expect(yaml.placeOf(['nothing'], 'value')).toEqual({ line: 1, column: 1 })
  })
})
