/** The problems of a configuration with their positions, and the error that contains all of them. */
import type { Path } from '../load/read-yaml.ts'

/** A problem of a value, or of its key. */
export type Violation = { path: Path; part: 'key' | 'value'; message: string }
/** `part`: by default the value. */
export type Report = (path: Path, message: string, part?: Violation['part']) => void

export function violationsOf(check: (report: Report) => void): Violation[] {
  const out: Violation[] = []
  check((path, message, part = 'value') => void out.push({ path, part, message }))
  return out
}

export type ConfigProblem = {
  /** The file name as given, or `environment`, or `command line`. */
  file: string
  /** From 1; undefined without a file. */
  line: number | undefined
  column: number | undefined
  /** `models.acme/large.limits.max_tokens`, a variable's name, or a flag; empty for the file as a whole. */
  path: string
  /** The value found and the values allowed. Never contains a value from the environment. */
  message: string
}

/** Of a file as a whole, or of what is in none. */
export const unplaced = (file: string, message: string, path = ''): ConfigProblem => ({
  file,
  line: undefined,
  column: undefined,
  path,
  message,
})

export class ConfigError extends Error {
  readonly problems: ConfigProblem[]
  constructor(problems: ConfigProblem[]) {
    super(problems.map(problemText).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** One line: `gatehouse.yaml:12:7  server.port: found "many" (string), must be an integer`. */
export function problemText(problem: ConfigProblem): string {
  const what = problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`
  if (problem.line === undefined) return isFile(problem) ? `${problem.file}  ${what}` : what
  return `${problem.file}:${problem.line}:${problem.column}  ${what}`
}

export const ENVIRONMENT = 'environment'
export const COMMAND_LINE = 'command line'

const isFile = ({ file }: ConfigProblem): boolean => file !== ENVIRONMENT && file !== COMMAND_LINE

/** `server.port`, `tokens.models[0]`, `models."acme/v1.5".limits`: a key that contains a dot is quoted. */
export function placeName(path: readonly (string | number)[]): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += `${text === '' ? '' : '.'}${/[.[\]\s"]/.test(step) || step === '' ? JSON.stringify(step) : step}`
  }
  return text
}
