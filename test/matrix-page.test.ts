/** The tables of the manual's page on tested clients, from the calls that passed. */
import { expect, test } from 'bun:test'
import { createSeen, type PageColumn, type PageRow, type Section, withTables } from './matrix/page.ts'

const PAGE = 'Before\n<!-- Generated: test/matrix.test.ts -->\n<!-- End. -->\nAfter\n'
const rows: PageRow[] = ['one', 'two', 'three'].map((name) => ({
  name: `\`${name}\``,
  packages: ['p'],
  base: '/v1',
  dialect: 'd',
}))
const columns: PageColumn[] = ['ask', 'stream'].map((name) => ({ name, group: 'Calls of chat' }))
const targets = ['sandbox', 'other']

/** The page after a run in which every call passed, except the calls of `failing`. */
function pageOf({ lacking, failing }: { lacking: string[]; failing: string[] }): string {
  const seen = createSeen()
  const section: Section = { rows, columns, targets, has: (row, column) => !lacking.includes(`${row} > ${column}`) }
  for (const row of rows) {
    for (const column of columns.filter(({ name }) => section.has(row.name, name))) {
      for (const target of targets) {
        if (!failing.includes(`${row.name} > ${column.name} > ${target}`)) seen.note(row, column, target)
      }
    }
  }
  return withTables(PAGE, { sections: [section], seen, versions: { p: 'npm:p@1.2.3' } })
}

test('names the calls that all clients pass', () => {
  const page = pageOf({ lacking: [], failing: [] })
  expect(page).toContain('| `one` | 1.2.3 | `d` | `/v1` |')
  expect(page).toContain('### Calls of chat\n\nask; stream\n\n<!-- End')
  expect(page).toStartWith('Before\n')
  expect(page).toEndWith('<!-- End. -->\nAfter\n')
})

test('lists a call that failed with one target, and none that the client does not have', () => {
  const page = pageOf({
    lacking: ['`one` > stream', '`two` > stream', '`three` > stream'],
    failing: ['`two` > ask > other', '`three` > ask > other'],
  })
  expect(page).toContain('ask; stream\n\n- `two`; `three`: failed: ask (other)\n\n<!-- End')
})

test('joins the majors and the families of one client', () => {
  const majors: PageRow[] = ['`c` 2, chat', '`c` 1, chat', '`c` 2, images'].map((name, at) => ({
    name,
    packages: [`p${at % 2}`],
    base: '',
    dialect: name.slice(7),
  }))
  const has = (row: string) => row.endsWith('chat')
  const section: Section = { rows: majors, columns, targets: ['t'], has }
  const page = withTables(PAGE, { sections: [section], seen: createSeen(), versions: { p0: '2.0.0', p1: '1.0.0' } })
  expect(page).toContain('| `c` | 2.0.0, 1.0.0 | `chat`, `images` | |')
  expect(page).toContain('- `c` 2/1, chat: failed: ask (t); stream (t)\n')
})
