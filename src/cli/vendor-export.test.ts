import { describe, expect, it } from 'bun:test'
import { csv, readCsv } from './csv.ts'
import { readVendorExport } from './vendor-export.ts'

const DAY = Date.UTC(2026, 0, 31) / 1000

describe('a CSV file', () => {
  it('is read as it was written, whatever its cells contain', () => {
    const rows = [
      ['a', 'b,c', 'd "e"'],
      ['', 'line\nbreak', 'ü'],
    ]
    expect(readCsv(csv(rows))).toEqual(rows)
    expect(readCsv('\ufeffa;b\r\n1;2\r\n\r\n')).toEqual([
      ['a', 'b'],
      ['1', '2'],
    ])
  })

  it('contains no formula that a client has chosen', () => {
    expect(csv([['=cmd()', '@x', '+x', '-x', '-1.5']])).toBe("'=cmd(),'@x,'+x,'-x,-1.5\n")
  })
})

describe('the export of a provider', () => {
  it('is summed up by day and model, whatever its columns are called', () => {
    const text =
      'Date,Model,Num Model Requests,Prompt tokens,Cost (USD)\n2026-01-31T10:00:00Z,m,2,10,"$1,000.50"\n2026-01-31,m,1,5,0.25\n1769817600,n,1,,\n'
    expect(readVendorExport(text)).toEqual([
      { day: DAY, model: 'm', requests: 3, input_tokens: 15, cost: 1_000_750_000_000n },
      { day: DAY, model: 'n', requests: 1, input_tokens: 0, cost: 0n },
    ])
  })

  it.each([
    ['when,model\n', 'no column date'],
    ['date,cost\n', 'no column model'],
    ['date,model,cost\n31.1.2026,m,1\n', 'line 2: the date is "31.1.2026"'],
    ['date,model,cost\n2026-01-31,m,much\n', 'line 2: cost is "much"'],
  ])('is rejected with the line and the column: %p', (text, message) => {
    expect(() => readVendorExport(text)).toThrow(message)
  })
})
