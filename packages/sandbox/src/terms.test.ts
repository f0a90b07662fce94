import { describe, expect, it } from 'bun:test'
import { splitWords, topicsOf } from './terms.ts'

describe('splitWords', () => {
  it('makes no word of more than 256 characters of a run of marks', () => {
    const words = splitWords(`a${'\u0301'.repeat(1_000)} rivers`)
    expect(words.map(({ length }) => length)).toEqual([256, 256, 256, 233, 6])
  })

  it('looks for words in the beginning of a long text only', () => {
    expect(splitWords(`${'!'.repeat(9_990)}rivers`, 1)).toEqual(['rivers'])
    expect(splitWords(`${'!'.repeat(20_000)}rivers`, 1)).toEqual([])
    expect(topicsOf('😀'.repeat(400_000), 5)).toEqual([])
  })
})
