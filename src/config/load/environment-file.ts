/** Reads environment variables from the file that GATEHOUSE_ENV_FILE names. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Environment } from './environment.ts'

/**
 * The variables of the process, and over them those of its environment file. The file wins: a process manager that sets
 * the variables from the same file has done so when the process was started, and the file may be newer.
 */
export function withEnvironmentFile(environment: Environment, cwd: string): Environment {
  const name = environment.GATEHOUSE_ENV_FILE
  if (name === undefined || name === '') return environment
  let text: string
  try {
    text = readFileSync(resolve(cwd, name), 'utf8')
  } catch (error) {
    const { code = 'unknown cause' } = error as { code?: string }
    throw new Error(`GATEHOUSE_ENV_FILE: ${name} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : code}`)
  }
  return { ...environment, ...parseEnvironmentFile(text, name) }
}

/** `NAME=value`, with or without `export`. */
const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/
/** A whole value in quotes. Within double quotes, `\` escapes a quote and itself. */
const SINGLE_QUOTED = /^'([^']*)'$/
const DOUBLE_QUOTED = /^"((?:[^"\\]|\\.)*)"$/

/** One variable a line, as systemd and `docker --env-file` read them. Throws an Error that never contains a value. */
export function parseEnvironmentFile(text: string, name: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const [index, whole] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = whole.trim()
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue
    const [, variable, written = ''] = ASSIGNMENT.exec(line) ?? []
    if (variable === undefined) throw new Error(`${name}:${index + 1} must be NAME=value, a comment or empty`)
    const value = unquoted(written.trim())
    if (value === undefined) throw new Error(`${name}:${index + 1} ${variable}: a quote has no end`)
    out[variable] = value
  }
  return out
}

function unquoted(text: string): string | undefined {
  const [, single] = SINGLE_QUOTED.exec(text) ?? []
  if (single !== undefined) return single
  const [, double] = DOUBLE_QUOTED.exec(text) ?? []
  if (double !== undefined) return double.replace(/\\(["\\$`])/g, '$1')
  return /^['"]/.test(text) ? undefined : text
}
