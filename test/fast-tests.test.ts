/** The selection that `npm run test:fast` runs: what it leaves out is there, and what it runs covers every module. */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { follow } from '../scripts/all-tests.ts'
import { allTests, fastTests, groupsOf, SLOW_TESTS } from '../scripts/fast-tests.ts'

const root = join(import.meta.dir, '..')
const modules = readdirSync(join(root, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

describe('npm test', () => {
  test('passes the text of the runner on, and says after every 25 files how many there are', async () => {
    const text = Array.from({ length: 60 }, (_, at) => `src/f${at}.test.ts:\n(pass) a > b.test.ts: c\n`).join('')
    async function* stream() {
      for (let at = 0; at < text.length; at += 7) yield new TextEncoder().encode(text.slice(at, at + 7))
      yield new TextEncoder().encode('Ran 60 tests \u00fc')
    }
    let said = ''
    await follow(stream(), {
      files: 612,
      say: (more) => {
        said += more
      },
    })
    expect(said.match(/^\[.*\]$/gm)).toEqual(['[25 of 612 files, 0 min]', '[50 of 612 files, 0 min]'])
    expect(said.replaceAll(/^\[.*\]\n/gm, '')).toBe(`${text}Ran 60 tests \u00fc`)
  })
})

describe('npm run test:fast', () => {
  test('leaves out files that exist, in order', () => {
    const listed = Object.keys(SLOW_TESTS)
    expect(listed.filter((path) => !allTests().includes(path))).toEqual([])
    expect(listed).toEqual([...listed].sort())
  })

  test('runs every other file once, those of PostgreSQL in one process', async () => {
    const groups = await groupsOf(fastTests())
    expect(groups.flat().sort()).toEqual(allTests().filter((path) => SLOW_TESTS[path] === undefined))
    const isOfStore = (path: string) =>
      ['src/store/responses/responses.test.ts', 'src/store/tasks/webhooks.test.ts'].includes(path)
    expect(groups.map((group) => group.filter(isOfStore).length)).toEqual([2, ...groups.slice(1).map(() => 0)])
  })

  test.each(modules)('runs a test of src/%s: in it, named after it, or one that imports it', async (name) => {
    const fast = fastTests()
    const isNamed = (path: string) => path.startsWith(`src/${name}/`) || new RegExp(`^test/.*\\b${name}\\b`).test(path)
    if (fast.some(isNamed)) return
    const texts = await Promise.all(fast.map((path) => Bun.file(join(root, path)).text()))
    expect(texts.filter((text) => text.includes(`from '../src/${name}/`)).length).toBeGreaterThan(0)
  })
})
