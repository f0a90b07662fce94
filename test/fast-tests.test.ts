/** The selection that `npm run test:fast` runs: what it leaves out is there, and what it runs covers every module. */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createReport, followed, WAITING_TESTS } from '../scripts/all-tests.ts'
import { allTests, fastTests, groupsOf, SLOW_TESTS } from '../scripts/fast-tests.ts'

const root = join(import.meta.dir, '..')
const all = allTests()
const modules = readdirSync(join(root, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

/** In pieces that end anywhere. */
async function* pieces(text: string) {
  for (let at = 0; at < text.length; at += 7) yield new TextEncoder().encode(text.slice(at, at + 7))
}

function reported(files: number) {
  let said = ''
  const report = createReport({
    files,
    say: (more) => {
      said += more
    },
  })
  return { report, said: () => said }
}

describe('npm test', () => {
  test('passes the text of the runner on, and says after every 25 files how many there are', async () => {
    const text = Array.from({ length: 60 }, (_, at) => `src/f${at}.test.ts:\n(pass) a > b.test.ts: c\n`).join('')
    const { report, said } = reported(612)
    await report.follow(pieces(`${text}Ran 60 tests ü`))
    expect(said().match(/^\[.*\]$/gm)).toEqual(['[25 of 612 files, 0 min]', '[50 of 612 files, 0 min]'])
    expect(said().replaceAll(/^\[.*\]\n/gm, '')).toBe(`${text}Ran 60 tests ü`)
  })

  const ending = (pass: number, fail: number) =>
    ` ${pass} pass\n ${fail} fail\n 3 expect() calls\nRan ${pass + fail} tests across 2 files. [1.00s]\n`
  test('keeps the lines of a file together, and ends with the sum of its runners', async () => {
    const { report, said } = reported(4)
    const file = (name: string) => `src/${name}.test.ts:\n(pass) one\n(pass) two\n`
    await Promise.all([
      report.follow(pieces(`${file('a')}${file('b')}${ending(10, 0)}`)),
      report.follow(pieces(`${file('c')}${file('d')}${ending(1, 1)}`)),
    ])
    expect(report.end()).toBe(true)
    for (const name of ['a', 'b', 'c', 'd']) expect(said()).toContain(file(name))
    expect(said()).toMatch(/ 11 pass\n 0 skip\n 1 fail\n 6 expect\(\) calls\nRan 12 tests across 4 files\. \[.*s\]\n$/)
  })

  test('has failed, without a sum, where a runner did not come to its end', async () => {
    const { report, said } = reported(4)
    await Promise.all([report.follow(pieces(ending(10, 0))), report.follow(pieces('src/c.test.ts:\n(pass) one\n'))])
    expect(report.end()).toBe(false)
    expect(said()).not.toContain('11 pass')
    expect(said().match(/^Ran /gm)).toHaveLength(1)
  })

  test('does not wait for a process that a test has left behind, and keeps what the runner has said', async () => {
    const child = Bun.spawn(['sh', '-c', 'sleep 60 & echo $! >&2; printf "Ran 1 test" >&2; exit 3'], {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const { report, said } = reported(1)
    expect(await followed(child, report.follow, 1_000)).toBe(3)
    const [left, last] = said().split('\n')
    expect(last).toBe('Ran 1 test')
    process.kill(Number(left)) // it was still there
  })

  test('reads all that a runner has said before its end', async () => {
    const text = 'a line\n'.repeat(100_000)
    const child = Bun.spawn([process.execPath, '-e', 'process.stderr.write("a line\\n".repeat(100_000))'], {
      stderr: 'pipe',
    })
    const { report, said } = reported(1)
    expect(await followed(child, report.follow)).toBe(0)
    expect(said()).toBe(text)
  })

  test('runs beside the others files that exist, in order', () => {
    expect(WAITING_TESTS.filter((path) => !all.includes(path))).toEqual([])
    expect(WAITING_TESTS).toEqual([...WAITING_TESTS].sort())
  })
})

describe('npm run test:fast', () => {
  test('leaves out files that exist, in order', () => {
    const listed = Object.keys(SLOW_TESTS)
    expect(listed.filter((path) => !all.includes(path))).toEqual([])
    expect(listed).toEqual([...listed].sort())
  })

  test('runs every other file once, those of PostgreSQL in one process', async () => {
    const groups = await groupsOf(fastTests())
    expect(groups.flat().sort()).toEqual(all.filter((path) => SLOW_TESTS[path] === undefined))
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
