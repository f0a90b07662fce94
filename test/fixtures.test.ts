/** Every folder of fixtures names the source of its formats, and recorded fixtures contain only our own text. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { WORDS } from '../scripts/record-agents/filler.ts'
import { OURS } from '../scripts/record-agents/run.ts'
import { foreignProse } from '../scripts/record-agents/scrub.ts'
import { AGENTS, recorded } from './kit/agents.ts'

const FIXTURES = join(import.meta.dir, 'fixtures')
const SOURCE = /^Source: (recorded|SDK types|documentation|belief)\b/m
/** A recording and a documented format have a date; types have the version of their package. */
const DATED =
  /^Source: (?:recorded\b.*\d{4}-\d{2}-\d{2}|SDK types\b.*\d+\.\d+\.\d+|documentation\b.*\d{4}-\d{2}-\d{2}|belief\b)/m
const AGENTS_BYTES_AT_MOST = 1_500_000

/** Folders that contain files directly. */
const folders = readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' })
  .filter((name) => statSync(join(FIXTURES, name)).isDirectory())
  .filter((name) => readdirSync(join(FIXTURES, name)).some((file) => statSync(join(FIXTURES, name, file)).isFile()))

describe('fixtures', () => {
  test.each(folders.map((name) => [name] as const))('%s name the source of their formats', (name) => {
    // A README applies to the folders below it too.
    const readme = [name, name.split('/')[0] ?? ''].map((at) => join(FIXTURES, at, 'README.md')).find(existsSync)
    expect(readme).toBeDefined()
    const text = readFileSync(readme ?? '', 'utf8')
    expect(text).toMatch(SOURCE)
    expect(text).toMatch(DATED)
  })
})

describe('recorded requests of agents', () => {
  test.each(AGENTS.map((agent) => [agent] as const))('of %s contain no text of third parties', (agent) => {
    expect(recorded(agent).flatMap((request) => foreignProse(request, OURS))).toEqual([])
  })

  test('exist for all agents that have a folder', () => {
    const names = readdirSync(join(FIXTURES, 'agents')).filter((name) =>
      statSync(join(FIXTURES, 'agents', name)).isDirectory(),
    )
    expect(names.sort()).toEqual([...AGENTS].sort())
  })

  test('contain no key and no path of the machine that recorded them, and are not too large', () => {
    const texts = AGENTS.flatMap((agent) => recorded(agent).map((request) => JSON.stringify(request)))
    for (const text of texts) {
      expect(text).not.toMatch(/recorder-key|\/tmp\/|127\.0\.0\.1/)
    }
    expect(texts.join('').length).toBeLessThan(AGENTS_BYTES_AT_MOST)
  })

  test('have filler text without any tool name, so that a scripted provider calls no tool by chance', () => {
    const names = AGENTS.flatMap((agent) =>
      recorded(agent).flatMap((request) =>
        [...JSON.stringify(request.body).matchAll(/"name":"(\w{3,})"/g)].map(([, name = '']) => name.toLowerCase()),
      ),
    )
    expect(names.length).toBeGreaterThan(50)
    const found = new Set(names.filter((name) => WORDS.flat().some((word) => word.includes(name))))
    expect([...found]).toEqual([])
  })
})
