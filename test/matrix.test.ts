/**
 * Every client, every call, every kind of vendor: each cell is a test of its own, and the manual's tables show what ran.
 * To write those anew: GATEHOUSE_WRITE_MATRIX=1 sh scripts/bun.sh test test/matrix.test.ts
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageFile from '../package.json'
import { watchUnhandled } from './kit/served.ts'
import { COLUMNS, type Column } from './matrix/columns.ts'
import { type House, openHouse } from './matrix/house.ts'
import { createSeen, withTables } from './matrix/page.ts'
import { ROWS } from './matrix/rows.ts'
import { TARGET_NAMES } from './matrix/targets.ts'
import type { Row } from './matrix/words.ts'

const PAGE = join(import.meta.dir, '../docs/manual/clients.md')
const UNKNOWN = `sk-${'0'.repeat(48)}`

let house: House
let unhandled: ReturnType<typeof watchUnhandled>
const seen = createSeen()
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  unhandled = watchUnhandled()
  house = await openHouse()
})
afterAll(async () => {
  await house.close()
  expect(unhandled.stop()).toEqual([])
})

/** Only to see which calls a client has. */
const NOWHERE = { origin: 'http://127.0.0.1:9', token: 'x' }
const has = (row: Row, column: Column): boolean => column.has?.(row.connect(NOWHERE), row) ?? true

for (const row of ROWS) {
  describe(row.name, () => {
    for (const column of COLUMNS.filter((one) => has(row, one))) {
      test.each(TARGET_NAMES)(`${column.name}: %s`, async (name) => {
        const { origin, token } = house
        const client = row.connect({ origin, token })
        const stranger = row.connect({ origin, token: UNKNOWN })
        await column.check({ row, client, target: house.target(name), stranger })
        seen.note(row, column, name)
      })
    }
  })
}

test('the tables of the manual say what ran', () => {
  const page = readFileSync(PAGE, 'utf8')
  const versions = { ...packageFile.dependencies, ...packageFile.devDependencies }
  const made = withTables(page, { rows: ROWS, columns: COLUMNS, targets: TARGET_NAMES, has, seen, versions })
  if (process.env.GATEHOUSE_WRITE_MATRIX) writeFileSync(PAGE, made)
  expect(readFileSync(PAGE, 'utf8')).toBe(made)
})
