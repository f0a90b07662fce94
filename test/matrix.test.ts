/** Every client, every call, every kind of vendor: each cell is a test of its own, and the manual shows what ran. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openPort, type Port, watchUnhandled } from './kit/served.ts'
import { COLUMNS } from './matrix/columns.ts'
import { ROWS } from './matrix/rows.ts'
import { startTargets, TARGET_NAMES, type Targets } from './matrix/targets.ts'

let targets: Targets
let port: Port
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  unhandled = watchUnhandled()
  targets = startTargets()
  port = await openPort({ providers: targets.providers, models: targets.models })
})
afterAll(async () => {
  await port.close()
  await targets.stop()
  expect(unhandled.stop()).toEqual([])
})

const NOWHERE = { origin: 'http://127.0.0.1:9', token: 'x' }

for (const row of ROWS) {
  describe(row.name, () => {
    const shape = row.connect(NOWHERE)
    for (const column of COLUMNS) {
      if (column.has && !column.has(shape, row)) continue
      test.each(TARGET_NAMES)(`${column.name}: %s`, async (name) => {
        const target = targets.targets.find((one) => one.name === name)
        if (!target) throw new Error(`No target is called ${name}.`)
        const origin = port.url.replace(/\/v1$/, '')
        const client = row.connect({ origin, token: port.token })
        const stranger = row.connect({ origin, token: `sk-${'0'.repeat(48)}` })
        await column.check({ row, client, target, stranger })
      })
    }
  })
}
