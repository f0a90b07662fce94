/** The selection that `npm run test:fast` runs: what it leaves out is there, and what it runs covers every module. */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { allTests, fastTests, groupsOf, SLOW_TESTS } from '../scripts/fast-tests.ts'

const root = join(import.meta.dir, '..')
const modules = readdirSync(join(root, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

describe('npm run test:fast', () => {
  test('leaves out files that exist, in order', () => {
    const listed = Object.keys(SLOW_TESTS)
    expect(listed.filter((path) => !allTests().includes(path))).toEqual([])
    expect(listed).toEqual([...listed].sort())
  })

  test('runs every other file once, those of PostgreSQL in one process', async () => {
    const groups = await groupsOf(fastTests())
    expect(groups.flat().sort()).toEqual(allTests().filter((path) => SLOW_TESTS[path] === undefined))
    const isOfStore = (path: string) => ['src/store/responses.test.ts', 'src/store/webhooks.test.ts'].includes(path)
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
