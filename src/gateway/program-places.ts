/** Names the files of the gateway that programs of MCP servers may never read, and the place of their own directories. */
import { readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { namedPaths } from '../config/check/proposed-paths.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/load/environment.ts'
import type { ProgramPlaces } from '../providers/mcp/program-sandbox.ts'

export function programPlaces(config: Config, environment: Environment): ProgramPlaces {
  const { data_dir, file, store_url } = config
  const named = namedPaths(config, data_dir).map(({ base, text }) => resolve(base, text))
  const database = /^sqlite:(.+)/.exec(store_url)?.[1]
  const files = [file, environment.GATEHOUSE_ENV_FILE, database, database && `${database}-wal`]
  return {
    directory: resolve(data_dir, 'mcp'),
    hidden: [
      resolve(data_dir),
      ...named,
      ...files.flatMap((path) => (path ? [resolve(path)] : [])),
      ...environmentFiles(process.cwd()),
      ...(file === undefined ? [] : environmentFiles(dirname(resolve(file)))),
    ],
  }
}

function environmentFiles(directory: string): string[] {
  try {
    return readdirSync(directory).flatMap((name) => (name.startsWith('.env') ? [join(directory, name)] : []))
  } catch {
    return []
  }
}
