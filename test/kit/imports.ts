/** Runs `gatehouse import` in this process, in a directory of its own. */
import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runCheck } from '../../src/cli/commands/check.ts'
import { run as runImport } from '../../src/cli/commands/import.ts'
import { collectingTerminal } from './terminal.ts'

type Line = { outcome: string; from: string; to?: string; why?: string }
type Report = {
  lines: Line[]
  variables: { name: string; in_plain: boolean }[]
  accounts: { kind: string; name: string; outcome: string }[]
  problems: string[]
  written: boolean
}

export function importDirectory() {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-import-'))
  const run = async (command: typeof runImport, args: string[], variables: Record<string, string> = {}) => {
    const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: directory, ...variables }
    const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
    const code = await command(args, terminal).catch((thrown: Error) => thrown.message)
    return { ...printed, code }
  }
  return {
    path: directory,
    [Symbol.dispose]: () => rmSync(directory, { recursive: true }),
    import: (args: string[], variables?: Record<string, string>) => run(runImport, args, variables),
    check: (variables: Record<string, string>) => run(runCheck, [], variables),
    async report(args: string[], variables?: Record<string, string>): Promise<Report> {
      const { out, code } = await run(runImport, [...args, '--json'], variables)
      expect(code).toBe(0)
      return JSON.parse(out)
    },
    file: () => readFileSync(join(directory, 'gatehouse.yaml'), 'utf8'),
    /** A file of SQLite with these tables, their columns in the order of the rows. */
    database(name: string, tables: Record<string, Record<string, string | number | null>[]>): string {
      const file = new Database(join(directory, name), { create: true })
      for (const [table, rows] of Object.entries(tables)) {
        const columns = [...new Set(rows.flatMap(Object.keys))]
        file.run(`create table ${table} (${columns.map((one) => `"${one}"`).join(', ')})`)
        for (const row of rows) {
          const values = columns.map((one) => row[one] ?? null)
          file.run(`insert into ${table} values (${columns.map(() => '?').join(', ')})`, values)
        }
      }
      file.close()
      return name
    },
  }
}

export const outcomesOf = ({ accounts }: Report): string[] =>
  accounts.map(({ kind, name, outcome }) => `${outcome} ${kind} ${name}`)

export const lineOf = ({ lines }: Report, from: string): Line | undefined => lines.find((line) => line.from === from)
