/** Cells that a spreadsheet would run as formulas. */
import { describe, expect, it } from 'bun:test'
import { csv, readCsv } from './csv.ts'

const cellOf = (cell: string) =>
  readCsv(
    csv([
      ['name', 'x'],
      [cell, 'x'],
    ]),
  )[1]?.[0]

describe('comma-separated values', () => {
  it.each([
    '=1+1',
    '+cmd',
    '-cmd',
    '@SUM(A1)',
    '\t=1',
    '-1+1',
    '+1+1',
    '-2 and more',
    "-1|'cmd'!A1",
    '-',
    '+',
    '=5',
    '-1.',
  ])('start with an apostrophe where the cell is %j', (cell) => {
    expect(cellOf(cell)).toBe(`'${cell}`)
  })

  it.each(['-1', '-0.25', '+5', '1e-7', '-1.5e+3', '0', 'vendor/model-1', 'a=b', 'team@example.org', ''])(
    'are unchanged where the cell is %j',
    (cell) => {
      expect(cellOf(cell)).toBe(cell)
    },
  )

  it('neutralise a carriage return and a line feed before a formula', () => {
    expect(csv([['\r=1']])).toBe('"\'\r=1"\n')
    expect(csv([['\n=1']])).toBe('"\'\n=1"\n')
  })
})
