/** `gatehouse audit`: who changed what, and whether the log was tampered with. */
import type { AuditRow } from '../../spec/audit.ts'
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { pathWith } from '../admin-api.ts'
import { type Arguments, UsageError } from '../arguments.ts'
import { headedTable } from '../table.ts'

const HELP = `Usage: gatehouse audit <list | verify> [options]

Works on a running gateway (--url) or on its store.

Commands:
  list               show who changed what, newest first
      --actor <actor>        only what this administrator did, such as cli:root or environment
      --action <action>      only this action, such as token.create
      --object <id>          only what was done to this object
      --project <id>         only what was done to this project and its objects
      --limit <number>       at most so many rows, from 1 to 10000. Default 50
  verify             check that no row was changed, removed or inserted; exits with 1 if one was

Options:
${OPTIONS_HELP}

Examples:
  gatehouse audit list --action token.revoke
  gatehouse audit verify
`

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 10_000

export const run = commandOf('audit', HELP, {
  list: {
    flags: { actor: 'text', action: 'text', object: 'text', project: 'text', limit: 'text' },
    run: list,
  },
  verify: { run: verify },
})

const filterOf = (given: Arguments) => ({
  actor: given.text('actor'),
  action: given.text('action'),
  object_id: given.text('object'),
  project_id: given.text('project'),
})

async function list({ given, api, terminal }: Work) {
  const limit = limitOf(given.text('limit'))
  const rows = (await api.some(pathWith('/audit', filterOf(given)), { limit })).rows as AuditRow[]
  const head = ['TIME', 'ACTOR', 'ACTION', 'OBJECT', 'ADDRESS', 'CHANGE']
  const text = () => headedTable(head, rows.map(lineOf), terminal)
  return { data: { audit: rows }, text: rows.length === 0 ? () => 'There are no such rows.\n' : text }
}

const MAX_CHANGE = 100

function lineOf({ at_ms, actor, action, object_id, address, before, after }: AuditRow): string[] {
  const change = `${before === null ? '' : `${JSON.stringify(before)} -> `}${after === null ? '' : JSON.stringify(after)}`
  const text = change.length > MAX_CHANGE ? `${change.slice(0, MAX_CHANGE)}...` : change
  return [new Date(at_ms).toISOString().slice(0, 19), actor, action, object_id, address ?? '-', text]
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new UsageError('audit list', `--limit: found ${JSON.stringify(text)}, must be from 1 to ${MAX_LIMIT}`)
}

async function verify({ api }: Work) {
  const { rows, last_hash, broken } = (await api.call('/audit/verify')).body as AuditCheck
  const text = broken
    ? `The audit log is broken at row ${broken.sequence}: ${broken.trouble}. The ${rows} rows before are in order.\n`
    : `The audit log is in order: ${rows} rows, last hash ${last_hash}.\n`
  return { data: { rows, last_hash, broken }, text: () => text, code: broken ? 1 : 0 }
}

type AuditCheck = { rows: number; last_hash: string; broken: { sequence: number; trouble: string } | null }
