import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadManual } from './load-manual.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-pages-'))
  mkdirSync(join(directory, 'how-to/deep'), { recursive: true })
  writeFileSync(join(directory, 'README.md'), '# Index')
  writeFileSync(join(directory, 'zeta.md'), '# Zeta')
  writeFileSync(join(directory, 'notes.txt'), 'no page')
  writeFileSync(join(directory, 'how-to/alpha.md'), '# Alpha')
  writeFileSync(join(directory, 'how-to/deep/beta.md'), '# Beta')
})
afterAll(() => rmSync(directory, { recursive: true }))

describe('loadManual', () => {
  it('finds the pages of all folders by their base names, without the index', async () => {
    expect(await loadManual(directory)).toEqual([
      { name: 'alpha', folder: 'how-to', text: '# Alpha' },
      { name: 'beta', folder: 'how-to/deep', text: '# Beta' },
      { name: 'zeta', folder: '', text: '# Zeta' },
    ])
  })

  it('returns no pages when the manual is not installed', async () => {
    expect(await loadManual(`${directory}/missing`)).toEqual([])
  })
})
