/** Every client, every call, every kind of vendor: each cell is a test of its own, and the manual shows what ran. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { watchUnhandled } from './kit/served.ts'
import { COLUMNS } from './matrix/columns.ts'
import { type House, openHouse } from './matrix/house.ts'
import { ROWS } from './matrix/rows.ts'
import { TARGET_NAMES } from './matrix/targets.ts'

let house: House
let unhandled: ReturnType<typeof watchUnhandled>
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
const UNKNOWN = `sk-${'0'.repeat(48)}`

for (const row of ROWS) {
  describe(row.name, () => {
    const shape = row.connect(NOWHERE)
    for (const column of COLUMNS) {
      if (column.has && !column.has(shape, row)) continue
      test.each(TARGET_NAMES)(`${column.name}: %s`, async (name) => {
        const { origin, token } = house
        const client = row.connect({ origin, token })
        const stranger = row.connect({ origin, token: UNKNOWN })
        await column.check({ row, client, target: house.target(name), stranger })
      })
    }
  })
}
