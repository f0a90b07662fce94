import { describe, expect, it } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ADVISORY_LOCKS } from './advisory-locks.ts'

const SOURCES = join(import.meta.dir, '..')

describe('ADVISORY_LOCKS', () => {
  it('has another number for each lock', () => {
    const numbers = Object.values(ADVISORY_LOCKS)
    expect(new Set<number>(numbers).size).toBe(numbers.length)
  })

  it('has every lock of the code', () => {
    const users: string[] = []
    for (const path of new Bun.Glob('**/*.ts').scanSync(SOURCES)) {
      if (path.endsWith('.test.ts') || path === 'store/advisory-locks.ts') continue
      const text = readFileSync(join(SOURCES, path), 'utf8')
      if (!/pg_(try_)?advisory_/.test(text)) continue
      users.push(path)
      expect([path, text.includes('ADVISORY_LOCKS.')]).toEqual([path, true])
      expect([path, /\d_?306_?089_?\d{3}|advisory_\w*\(\s*\d/.test(text)]).toEqual([path, false])
    }
    expect(users.length).toBeGreaterThan(0)
  })
})
