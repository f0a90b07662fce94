/** Checks what the request log records of contents, and where its rows go and are searched. */
import { mayRecordContents } from '../schema/request-log-schema.ts'
import type { FileConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'

export function checkContents({ request_log }: FileConfig, report: Report): void {
  const { contents, enabled } = request_log ?? {}
  if (!contents) return
  const at = ['request_log', 'contents']
  if (enabled === false && mayRecordContents(contents)) {
    report(at, 'needs request_log.enabled: contents belong to a row of the request log')
  }
  const names = new Set<string>()
  for (const [index, entry] of (contents.patterns ?? []).entries()) {
    if (entry === undefined) continue // it failed the schema
    const { name, pattern } = entry
    const problem = pattern === undefined ? undefined : redactionProblem(pattern)
    if (problem) report([...at, 'patterns', index, 'pattern'], problem)
    if (name !== undefined && names.has(name)) report([...at, 'patterns', index, 'name'], 'another pattern has it too')
    names.add(name)
  }
}

/** Undefined where nothing is wrong. */
function redactionProblem(pattern: string): string | undefined {
  // Loaded only where there are patterns.
  const { RE2JS } = require('re2js') as typeof import('re2js')
  try {
    if (!RE2JS.compile(pattern).matcher('').find()) return undefined
    return 'matches the empty text, must match at least one character'
  } catch (error) {
    return `is no regular expression of RE2, which has no look-around and no back-references: ${error instanceof Error ? error.message : error}`
  }
}

/** Why contents, or connections of people, cannot be stored; undefined: they can, or are not to be. */
export function contentsKeyProblem({ request_log, mcp }: FileConfig, key: string | undefined): string | undefined {
  if (key !== undefined) return undefined
  const server = Object.entries(mcp?.servers ?? {}).find(([, { oauth_user }]) => oauth_user !== undefined)?.[0]
  if (server !== undefined)
    return `is not set, and mcp.servers.${server}.oauth_user is: tokens of people are stored only encrypted; openssl rand -base64 32 makes a key`
  const { contents } = request_log ?? {}
  if (!contents || !mayRecordContents(contents)) return undefined
  return 'is not set, and request_log.contents is on: contents are stored only encrypted; openssl rand -base64 32 makes a key'
}

export function checkRequestSinks({ request_log }: FileConfig, report: Report): void {
  for (const [index, sink] of (request_log?.sinks ?? []).entries()) {
    const kinds = [sink?.file, sink?.http, sink?.clickhouse].filter((one) => one !== undefined)
    if (!sink || kinds.length === 1) continue
    report(['request_log', 'sinks', index], 'must have one of `file`, `http` and `clickhouse`')
  }
  const engines = (request_log?.sinks ?? []).filter((sink) => sink?.clickhouse !== undefined)
  if (request_log?.reader === 'clickhouse' && engines.length !== 1)
    report(['request_log', 'reader'], `needs one sink with \`clickhouse\`, found ${engines.length}`)
}
