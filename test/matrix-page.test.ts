/** The tables of the manual's page on clients, from the calls that passed. */
import { expect, test } from 'bun:test'
import { createSeen, type PageColumn, type PageRow, type Section, withTables } from './matrix/page.ts'

const PAGE = 'Before\n<!-- Made by test/matrix.test.ts; see there. -->\n<!-- End of what is made. -->\nAfter\n'
const rows: PageRow[] = ['one', 'two', 'three'].map((name) => ({ name, packages: ['p'], base: '/v1', dialect: 'd' }))
const columns: PageColumn[] = ['ask', 'stream'].map((name) => ({ name, group: 'Calls of chat' }))
const targets = ['sandbox', 'other']

/** The page after every call that a client has passed with every target, except the calls of `failing`. */
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

test('names the calls, and says that all clients pass them', () => {
  const page = pageOf({ lacking: [], failing: [] })
  expect(page).toContain('| one | 1.2.3 | `d` | `http://127.0.0.1:8787/v1` |')
  expect(page).toContain('### Calls of chat\n\nCalls: ask; stream.\n\nAll of these clients pass all calls.\n')
  expect(page).toStartWith('Before\n')
  expect(page).toEndWith('<!-- End of what is made. -->\nAfter\n')
})

test('lists clients with the same exceptions in one row', () => {
  const page = pageOf({ lacking: ['one > stream', 'three > stream'], failing: [] })
  expect(page).toContain('| one; three | not available: stream |\n\nThe other clients pass all calls.')
})

test('lists a call that failed with one target, beside a call that the client lacks', () => {
  const page = pageOf({
    lacking: ['one > stream', 'two > stream', 'three > stream'],
    failing: ['two > ask > other'],
  })
  expect(page).toContain('| one; three | not available: stream |\n')
  expect(page).toContain('| two | not available: stream. failed: ask (other) |\n')
  expect(page).not.toContain('The other clients')
})
