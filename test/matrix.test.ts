/**
 * Every client, every call, every kind of provider: each cell is one test, and the manual's tables show what ran. To
 * write the tables: GATEHOUSE_WRITE_MATRIX=1 sh scripts/bun.sh test test/matrix.test.ts
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import packageFile from '../package.json'
import clientPackage from '../packages/ai-sdk/package.json'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import { manualPath } from './kit/manual.ts'
import { watchUnhandled } from './kit/served.ts'
import { COLUMNS } from './matrix/columns.ts'
import { FAMILIES } from './matrix/families/families.ts'
import { type AnyFamily, startKinds, targetsOf, UNKNOWN } from './matrix/families/family.ts'
import { type GatewayServer, type MatrixGateway, openMatrixGateway, startGatewayServer } from './matrix/gateway.ts'
import { createSeen, type PageColumn, type PageRow, type Section, withTables } from './matrix/page.ts'
import { ROWS } from './matrix/rows.ts'
import { TARGET_NAMES } from './matrix/targets.ts'

const PAGE = manualPath('tested-clients.md')

let gateway: MatrixGateway
let server: GatewayServer
let stopVendors: () => Promise<unknown>
let unhandled: ReturnType<typeof watchUnhandled>
const seen = createSeen()
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  unhandled = watchUnhandled()
  gateway = await openMatrixGateway()
  const started = FAMILIES.map(startKinds)
  stopVendors = () => Promise.all(started.map(({ stop }) => stop()))
  server = await startGatewayServer({
    tasks: FAST,
    providers: Object.assign({}, ...started.map(({ providers }) => providers)),
    models: Object.assign({}, ...started.map(({ models }) => models)),
  })
})
afterAll(async () => {
  await gateway.close()
  await server.close()
  await stopVendors()
  expect(unhandled.stop()).toEqual([])
})

const FAST = { ...DEFAULT_TASKS, deadline_minutes: 1, poll_seconds: 0.05, slow_poll_seconds: 1 }

type Field<Row extends PageRow, Column extends PageColumn> = {
  rows: readonly Row[]
  columns: readonly Column[]
  targets: readonly string[]
  /** These cells mostly wait, so they run concurrently. */
  waits?: boolean
  has(row: Row, column: Column): boolean
  check(at: { row: Row; column: Column; target: string }): Promise<void>
}

/** Rendering takes time on a busy machine. */
const TEST_MILLISECONDS = 120_000

/** Runs a test for each cell, and records it for the page. */
function play<Row extends PageRow, Column extends PageColumn>(field: Field<Row, Column>): Section {
  const had = new Set<string>()
  for (const row of field.rows) {
    describe(row.name, () => {
      for (const column of field.columns.filter((one) => field.has(row, one))) {
        had.add(`${row.name} > ${column.name}`)
        const cell = async (target: string) => {
          await field.check({ row, column, target })
          seen.note(row, column, target)
        }
        const run = field.waits ? test.concurrent : test
        run.each(field.targets)(`${column.name}: %s`, cell, TEST_MILLISECONDS)
      }
    })
  }
  return { ...field, has: (row, column) => had.has(`${row} > ${column}`) }
}

/** Used only to find out which calls a client has. */
const NOWHERE = { origin: 'http://127.0.0.1:9', token: 'x' }

const chat = play({
  rows: ROWS,
  columns: COLUMNS,
  targets: TARGET_NAMES,
  has: (row, column) => column.has?.(row.connect(NOWHERE), row) ?? true,
  async check({ row, column, target }) {
    const { origin, token } = gateway
    const client = row.connect({ origin, token })
    const unauthorized = row.connect({ origin, token: UNKNOWN })
    await column.check({ row, client, target: gateway.target(target), unauthorized })
  },
})

function playFamily(family: AnyFamily): Section {
  const targets = targetsOf(family)
  return play({
    ...family,
    targets: targets.map(({ name }) => name),
    waits: ['video-generation', '3d-generation'].includes(family.family),
    async check({ row, column, target }) {
      const { origin, token } = server
      const found = targets.find(({ name }) => name === target)
      if (!found) throw new Error(`No target is called ${target}.`)
      await family.check({ row, column, target: found }, { origin, token })
    },
  })
}
const others = FAMILIES.map(playFamily)

test('the tables of the manual show what ran', () => {
  const page = readFileSync(PAGE, 'utf8')
  const own = { [clientPackage.name]: clientPackage.version }
  const versions = { ...packageFile.dependencies, ...packageFile.devDependencies, ...own }
  const made = withTables(page, { sections: [chat, ...others], seen, versions })
  if (process.env.GATEHOUSE_WRITE_MATRIX) writeFileSync(PAGE, made)
  expect(readFileSync(PAGE, 'utf8')).toBe(made)
})
