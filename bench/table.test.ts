import { describe, expect, test } from 'bun:test'
import { median, percentile, show } from './figures.ts'
import type { Row } from './plan.ts'
import { judge, renderTable } from './table.ts'

const row: Row = {
  name: 'requests/s',
  figures: { direct: 60_000, nginx: 50_000, bun: 20_000, gatehouse: 10_000, portkey: 1000 },
  goals: [
    { of: 'nginx', atLeast: 0.25 },
    { of: 'portkey', atLeast: 8 },
  ],
}

describe('the table', () => {
  test('gives the ratios to nginx and to Portkey, and both goals with their distance', () => {
    const line = renderTable([row]).split('\n').at(-1) ?? ''
    expect(line.split('|').map((cell) => cell.trim())).toEqual([
      '',
      'requests/s',
      '60,000',
      '50,000',
      '20,000',
      '10,000',
      '1,000',
      '0.2 ×',
      '10 ×',
      'at least 0.25 × nginx: MISSED by 20 %; at least 8 × Portkey: met by 25 %',
      '',
    ])
  })

  test('says why a figure is missing, and calls its goal not measured', () => {
    const lost: Row = {
      name: 'memory',
      figures: { nginx: 4 },
      remarks: { gatehouse: '3 streams failed' },
      goals: [{ below: 60 }],
    }
    const line = renderTable([lost]).split('\n').at(-1) ?? ''
    expect(line).toContain('| 3 streams failed |')
    expect(line).toContain('below 60: not measured')
  })

  test('gives no ratio to a difference that noise made negative', () => {
    const noise: Row = { name: 'added', figures: { nginx: -0.2, gatehouse: -0.1 } }
    expect(renderTable([noise]).split('\n').at(-1)).not.toContain('×')
  })

  test.each([
    [59.99, 'met'],
    [60, 'MISSED'],
  ])('a goal below 60 at %d is %s', (gatehouse, word) => {
    expect(judge({ name: '', figures: { gatehouse } }, { below: 60 })).toContain(word)
  })

  test.each([
    [150_000, 'met'],
    [149_999, 'MISSED'],
  ])('a goal of at least 150,000 at %d is %s', (gatehouse, word) => {
    expect(judge({ name: '', figures: { gatehouse } }, { atLeast: 150_000 })).toContain(word)
  })
})

describe('figures', () => {
  test('the median is the middle one, or the mean of the two in the middle', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([9, 1, 5, 6])).toBe(5.5)
  })

  test('a percentile is a value that was measured, and of nothing it is no number', () => {
    const numbers = Array.from({ length: 100 }, (_, index) => index + 1)
    expect(percentile(numbers, 50)).toBe(51)
    expect(percentile(numbers, 99)).toBe(100)
    expect(percentile([], 50)).toBeNaN()
  })

  test('three significant figures are shown, and a dash for what is no number', () => {
    expect(show(0.012345)).toBe('0.0123')
    expect(show(1_234_567)).toBe('1,230,000')
    expect(show(Number.NaN)).toBe('-')
  })
})
