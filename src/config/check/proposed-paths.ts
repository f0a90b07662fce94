/** Checks the paths of a configuration that comes by the admin API: they lie below the data directory, without links. */
import { lstatSync, realpathSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { memberOf } from '../../kit/json.ts'
import type { Loaded } from '../load/load.ts'
import type { FileConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'
import { namedPaths } from './sandbox-paths.ts'

type PathParts = {
  file: FileConfig
  before: Loaded
  /** Of the running gateway. */
  data_dir: string
  /** Absolute. */
  config_file: string
}

/** Names that no other file of the gateway has, and none that another program runs or reads as its settings. */
const SINK_NAME = /\.(ndjson|jsonl|log)$/
/** What the gateway itself keeps in the data directory, besides finished files. */
const OWN = /^(gatehouse\.db|spool$)/

/** A path that the file on disk has may stay, wherever it leads. */
export function checkProposedPaths({ file, before, data_dir, config_file }: PathParts, report: Report): void {
  const pathsOf = (value: unknown) => namedPaths(value, data_dir)
  const known = new Set(pathsOf(before.yaml?.value).map(({ base, text }) => resolve(base, text)))
  checkDataDirectory({ file, before, data_dir, config_file }, report)
  for (const { path, text, base, isSink } of pathsOf(file)) {
    const target = resolve(base, text)
    if (known.has(target)) continue
    const problem = placeProblem(data_dir, target) ?? (isSink && !SINK_NAME.test(target) ? NOT_A_SINK : undefined)
    if (problem) report(path, problem)
  }
}

/** Also where a variable or flag of this start wins: the next one may lack it. */
function checkDataDirectory({ file, before, data_dir, config_file }: PathParts, report: Report): void {
  const named = memberOf(before.yaml?.value, 'data_dir')
  const proposed: unknown = file.data_dir
  if (proposed === named) return
  // Without it, the data directory depends on where the next start happens.
  if (proposed === undefined) report(['data_dir'], 'cannot be removed by the admin API; remove it from the file itself')
  else if (typeof proposed === 'string' && resolve(dirname(config_file), proposed) !== data_dir)
    report(['data_dir'], 'cannot be changed by the admin API; write it into the file itself')
}

const NOT_A_SINK = 'must end with .ndjson, .jsonl or .log where it is given by the admin API'

/** Why a path may not be given by the admin API; undefined: it may. */
function placeProblem(data_dir: string, target: string): string | undefined {
  const inside = relative(data_dir, target)
  const steps = inside.split(sep)
  if (inside === '' || steps[0] === '..') {
    return `must be below the data directory (${data_dir}) where it is given by the admin API; write other paths into the file itself`
  }
  if (OWN.test(steps[0] ?? '')) return 'is a place where the gateway keeps its own files; choose another name'
  return hasLink(data_dir, steps)
    ? 'leads through a symbolic link or a file, which a path given by the admin API must not'
    : undefined
}

/** What does not exist yet is created below the last directory that does. */
function hasLink(data_dir: string, steps: string[]): boolean {
  let place = data_dir
  try {
    place = realpathSync(data_dir)
    for (const step of steps) {
      place = join(place, step)
      if (lstatSync(place).isSymbolicLink()) return true
    }
    return false
  } catch (error) {
    // Whatever cannot be inspected is refused like a link.
    return (error as { code?: string }).code !== 'ENOENT'
  }
}
