import { describe, expect, it } from 'bun:test'
import { Placeholders } from './placeholders.ts'

describe('Placeholders', () => {
  it('replaces and restores 50,000 values among as many brackets without looking at all of them for each', () => {
    const placeholders = new Placeholders()
    const values = Array.from({ length: 50_000 }, (_, index) => `user${index}@example.com`)
    const written = '[[EMAIL_1] [EMAIL_3 '
    placeholders.avoid([written, '[a '.repeat(50_000)])
    const replaced = values.map((value) => placeholders.of('EMAIL', value))
    expect(replaced.slice(0, 2)).toEqual(['[EMAIL_2]', '[EMAIL_3]'])
    const text = written + replaced.join(' [a ')
    expect(placeholders.restored(text, false)).toBe(written + values.join(' [a '))
  })

  it('restores placeholders that are cut at any character, and holds back nothing else', () => {
    const placeholders = new Placeholders()
    for (const value of ['a', 'b']) placeholders.of('EMAIL', value)
    const text = '[[EMAIL_1][EMAIL_12] [EMAIL_2]] [EMAIL_3] [X [EMAIL_'
    for (let cut = 0; cut <= text.length; cut++) {
      const restorer = placeholders.restorer(false)
      const out = restorer.push(text.slice(0, cut)) + restorer.push(text.slice(cut)) + restorer.end()
      expect(out).toBe('[a[EMAIL_12] b] [EMAIL_3] [X [EMAIL_')
    }
    expect(placeholders.restorer(false).push('[X [EMAIL] [EMAIL_1')).toBe('[X [EMAIL] ')
  })
})
